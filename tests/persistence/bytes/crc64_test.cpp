// SPDX-License-Identifier: MIT
#include "persistence/bytes/crc64.h"

#include <gtest/gtest.h>

#include <string>

namespace persistence {
namespace {

// The first checksum is the one that Redis' own test expects for this text.
TEST(Crc64Test, EqualsTheChecksumOfRedis) {
  EXPECT_EQ(crc64(0, "123456789"), 0xe9c6d914c4b8d9caU);
  EXPECT_EQ(crc64(0, ""), 0U);
}

TEST(Crc64Test, ChecksumOfPartsEqualsTheWhole) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 7);
  const uint64_t whole = crc64(0, bytes);
  for (size_t cut = 0; cut <= bytes.size(); cut += 13) {
    EXPECT_EQ(crc64(crc64(0, bytes.substr(0, cut)), bytes.substr(cut)), whole) << cut;
  }
}

TEST(Crc64Test, EveryBitChangesTheChecksum) {
  std::string bytes(64, 'x');
  const uint64_t whole = crc64(0, bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    EXPECT_NE(crc64(0, flipped), whole) << bit;
  }
}

}  // namespace
}  // namespace persistence
