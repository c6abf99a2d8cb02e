// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_tail.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "persistence/aof/aof_format.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

class AofTailTest : public ::testing::Test {
 protected:
  AofTail look(std::string bytes, uint64_t begin, std::optional<uint64_t> wrong_offset = {}) {
    disk_.put("file", std::move(bytes));
    const auto tail = look_at_tail(disk_, "file", begin, wrong_offset);
    EXPECT_TRUE(tail);
    return tail ? *tail : AofTail{};
  }
  static std::string checksum_line() { return checksum_text(0x0123456789abcdef) + "\r\n"; }

  virtual_disk::VirtualDisk disk_;
};

TEST_F(AofTailTest, MissingFileIsAnError) {
  EXPECT_FALSE(look_at_tail(disk_, "absent", 0, {}));
}

TEST_F(AofTailTest, EndsWhereTheFileEnds) {
  const AofTail tail = look(std::string(1000, 'x'), 400);
  EXPECT_EQ(tail.begin, 400U);
  EXPECT_EQ(tail.end, 1000U);
  EXPECT_FALSE(tail.checksum_line);
  EXPECT_FALSE(tail.has_hole());
}

TEST_F(AofTailTest, FindsTheFirstChecksumLine) {
  const AofTail tail =
      look(std::string(300, 'x') + checksum_line() + "more" + checksum_line(), 100);
  ASSERT_TRUE(tail.checksum_line);
  EXPECT_EQ(*tail.checksum_line, 300U);
}

TEST_F(AofTailTest, LinesBeforeTheTailDoNotCount) {
  const std::string line = checksum_line();
  EXPECT_FALSE(look(line + std::string(300, 'x'), line.size()).checksum_line);
  EXPECT_FALSE(look(line + std::string(300, 'x'), 10).checksum_line)
      << "part of a checksum line before the tail";
}

TEST_F(AofTailTest, LineAcrossTwoPiecesIsFound) {
  const size_t chunk = size_t{256} << 10;
  for (size_t before = chunk - checksum_line().size(); before <= chunk; before += 7) {
    const AofTail tail = look(std::string(before, 'x') + checksum_line(), 0);
    ASSERT_TRUE(tail.checksum_line) << before;
    EXPECT_EQ(*tail.checksum_line, before);
  }
}

TEST_F(AofTailTest, ZerosAroundTheWrongByteAreARun) {
  const std::string bytes = std::string(100, 'x') + std::string(50, '\0') + std::string(10, 'y');
  const AofTail tail = look(bytes, 0, 120);
  EXPECT_EQ(tail.zeros_begin, 100U);
  EXPECT_EQ(tail.zeros_end, 150U);
  EXPECT_FALSE(tail.zeros_reach_end());
}

TEST_F(AofTailTest, OtherZerosDoNotCount) {
  const std::string zeros(50, '\0');
  const AofTail tail = look(zeros + std::string(100, 'x') + zeros, 0, 75);
  EXPECT_EQ(tail.zeros_begin, tail.zeros_end);
}

TEST_F(AofTailTest, RunMayCrossPieces) {
  const size_t chunk = size_t{256} << 10;
  const std::string bytes = std::string(chunk - 10, 'x') + std::string(20, '\0') + "y";
  const AofTail tail = look(bytes, 0, chunk + 5);
  EXPECT_EQ(tail.zeros_begin, chunk - 10);
  EXPECT_EQ(tail.zeros_end, chunk + 10);
}

TEST_F(AofTailTest, ZerosUpToTheEndAreDetected) {
  const AofTail tail = look(std::string(512, 'x') + std::string(512, '\0'), 0, 512);
  EXPECT_TRUE(tail.zeros_reach_end());
  EXPECT_TRUE(tail.has_hole());
}

TEST_F(AofTailTest, WholeBlocksOfZerosAreAHole) {
  const std::string block(512, '\0');
  EXPECT_TRUE(look(std::string(512, 'x') + block + "y", 0, 600).has_hole());
}

// Zeros that do not fill whole blocks may belong to a value. Even if a bit flips in the value's
// length, the zeros must not look like the result of a power cut.
TEST_F(AofTailTest, PartialBlocksOfZerosAreNoHole) {
  EXPECT_FALSE(look(std::string(500, 'x') + std::string(512, '\0') + "y", 0, 600).has_hole());
  EXPECT_FALSE(look(std::string(512, 'x') + std::string(500, '\0') + "y", 0, 600).has_hole());
}

TEST_F(AofTailTest, HoleMayStartAfterTheLastVerifiedLine) {
  EXPECT_TRUE(look(std::string(500, 'x') + std::string(30, '\0') + "y", 500, 510).has_hole());
  EXPECT_FALSE(look(std::string(500, 'x') + std::string(10, '\0') + "y", 500, 505).has_hole())
      << "the zeros end within the block";
}

TEST_F(AofTailTest, ChecksumLineBeforeTheZerosIsDetected) {
  const std::string begin = checksum_line() + std::string(512 - checksum_line().size(), 'x');
  EXPECT_TRUE(look(begin + std::string(512, '\0'), 0, 600).has_checksum_line_before_zeros());
  EXPECT_FALSE(look(std::string(512, 'x') + std::string(512, '\0') + checksum_line(), 0, 600)
                   .has_checksum_line_before_zeros());
}

}  // namespace
}  // namespace persistence
