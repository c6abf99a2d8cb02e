// SPDX-License-Identifier: MIT
#include "server/admin/figures/reply_json.h"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "protocol/reply_parser.h"

namespace server::admin {
namespace {

std::string json_of(std::string_view resp) {
  protocol::ReplyParser parser;
  EXPECT_EQ(parser.parse(resp), protocol::ReplyParser::Status::kReply);
  return boost::json::serialize(to_json(parser.reply()));
}

TEST(ReplyJsonTest, EachTypeHasItsForm) {
  EXPECT_EQ(json_of(":-3\r\n"), "-3");
  EXPECT_EQ(json_of("#t\r\n"), "true");
  EXPECT_EQ(json_of("_\r\n"), "null");
  EXPECT_EQ(json_of(",inf\r\n"), "null");
  EXPECT_EQ(json_of("+OK\r\n"), "\"OK\"");
  EXPECT_EQ(json_of("*2\r\n:1\r\n$1\r\na\r\n"), "[1,\"a\"]");
  EXPECT_EQ(json_of("%1\r\n+key\r\n*0\r\n"), "{\"key\":[]}");
}

TEST(ReplyJsonTest, BytesThatAreNoTextAreSpelledOut) {
  EXPECT_EQ(json_of("$3\r\n\"\n\xFF\r\n"), R"("\"\\x0a\\xff")");
}

}  // namespace
}  // namespace server::admin
