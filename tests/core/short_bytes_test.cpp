// SPDX-License-Identifier: MIT
#include "core/short_bytes.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace core {
namespace {

std::string random_bytes(size_t size, std::mt19937_64& random) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Heap strings of the exact size, so that a sanitizer detects accesses past the end.
TEST(ShortBytes, CopiesExactlyEverySize) {
  std::mt19937_64 random(1);
  for (size_t size = 0; size <= 100; ++size) {
    const std::string from = random_bytes(size, random);
    std::string to(size + 2, 'x');
    copy_bytes(to.data() + 1, from);
    EXPECT_EQ(to, "x" + from + "x") << size;
  }
}

TEST(ShortBytes, ComparesEveryByte) {
  std::mt19937_64 random(2);
  for (size_t size = 0; size <= 100; ++size) {
    const std::string a = random_bytes(size, random);
    std::string b = a;
    EXPECT_TRUE(equal_bytes(a, b)) << size;
    EXPECT_FALSE(equal_bytes(a, b + "x"));
    for (size_t i = 0; i < size; ++i) {
      b[i] = static_cast<char>(b[i] ^ (1 << random() % 8));
      EXPECT_FALSE(equal_bytes(a, b)) << size << " " << i;
      b[i] = a[i];
    }
  }
}

}  // namespace
}  // namespace core
