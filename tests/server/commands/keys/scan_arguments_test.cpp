// SPDX-License-Identifier: MIT
//
// Tests of ScanArguments. Errors of parse_scan() are tested with the commands that use it.
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
  protocol::OutputBuffer buffer;
  protocol::ReplyWriter writer(buffer, protocol::RespVersion::kResp2);
  ReplyList list(writer);
  list.add("a");
  list.add("");
  list.write_to(writer);
  EXPECT_EQ(std::string(buffer.view()), "*2\r\n$1\r\na\r\n$0\r\n\r\n");
}

TEST(ReplyListTest, OverflowsWithTheReplyThatItGoesInto) {
  protocol::OutputBuffer buffer;
  buffer.append("before");
  buffer.set_limit(1000);
  protocol::ReplyWriter writer(buffer, protocol::RespVersion::kResp2);
  ReplyList list(writer);
  for (int i = 0; i < 100; ++i) list.add("a name of some length");
  EXPECT_FALSE(buffer.has_overflowed());
  list.write_to(writer);
  EXPECT_TRUE(buffer.has_overflowed());
}

}  // namespace
}  // namespace server
