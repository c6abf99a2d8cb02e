// SPDX-License-Identifier: MIT
#include "persistence/bytes/raw_bytes.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

namespace persistence {
namespace {

TEST(RawBytes, AgreesWithAString) {
  constexpr uint64_t kSeed = 8;
  std::mt19937_64 random(kSeed);
  RawBytes bytes;
  std::string model;
  for (int i = 0; i < 2000; ++i) {
    const std::string piece(random() % 200, static_cast<char>('a' + i % 26));
    switch (random() % 4) {
      case 0:
        bytes.append(piece);
        model += piece;
        break;
      case 1:
        std::ranges::copy(piece, bytes.grow(piece.size()).begin());
        model += piece;
        break;
      case 2:
        bytes.reserve(random() % 5000);
        break;
      default:
        bytes.shrink(bytes.size() - random() % (bytes.size() / 4 + 1));
        model.resize(bytes.size());
    }
    ASSERT_EQ(bytes.view(), model) << i;
    ASSERT_LE(bytes.size(), bytes.capacity());
  }
}

TEST(RawBytes, KeepsItsMemoryAndMovesIt) {
  RawBytes bytes;
  EXPECT_EQ(bytes.size(), 0U);
  EXPECT_EQ(bytes.capacity(), 0U);
  bytes.append("content");
  const char* const place = bytes.view().data();
  RawBytes moved(std::move(bytes));
  EXPECT_EQ(moved.view(), "content");
  EXPECT_EQ(moved.view().data(), place);
  moved.clear();
  EXPECT_EQ(moved.size(), 0U);
  moved.append("again");
  EXPECT_EQ(moved.view().data(), place);
}

}  // namespace
}  // namespace persistence
