// SPDX-License-Identifier: MIT
//
// What parse_scan() refuses is tested with the commands that use it.
#include "server/commands/keys/scan_arguments.h"

#include <gtest/gtest.h>

#include <string>

namespace server {
namespace {

TEST(NamePatternTest, AStarTakesTheEmptyNameToo) {
  EXPECT_TRUE(NamePattern("*").fits(""));
  EXPECT_TRUE(NamePattern("*").fits("any"));
  EXPECT_TRUE(NamePattern("a?").fits("ab"));
  EXPECT_FALSE(NamePattern("a?").fits("a"));
  EXPECT_FALSE(NamePattern("").fits("a"));
}

TEST(ReplyListTest, TheCountComesFirst) {
  ReplyList list(protocol::RespVersion::kResp2);
  list.add("a");
  list.add("");
  protocol::OutputBuffer buffer;
  protocol::ReplyWriter writer(buffer, protocol::RespVersion::kResp2);
  list.write_to(writer);
  EXPECT_EQ(std::string(buffer.view()), "*2\r\n$1\r\na\r\n$0\r\n\r\n");
}

}  // namespace
}  // namespace server
