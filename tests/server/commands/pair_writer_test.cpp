// SPDX-License-Identifier: MIT
#include "server/commands/pair_writer.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace server {
namespace {

template <class Write>
std::string written(Write write) {
  protocol::OutputBuffer buffer;
  protocol::ReplyWriter reply(buffer, protocol::RespVersion::kResp3);
  write(PairWriter(reply));
  return std::string(buffer.view());
}

TEST(PairWriterTest, LabelsPrecedeValues) {
  EXPECT_EQ(written([](auto pairs) { pairs.text("a", "bc"); }), "$1\r\na\r\n$2\r\nbc\r\n");
  EXPECT_EQ(written([](auto pairs) { pairs.integer("a", -1); }), "$1\r\na\r\n:-1\r\n");
  EXPECT_EQ(written([](auto pairs) { pairs.integer("a", uint64_t{7}); }), "$1\r\na\r\n:7\r\n");
  EXPECT_EQ(written([](auto pairs) { pairs.flag("a", true); }), "$1\r\na\r\n#t\r\n");
}

TEST(PairWriterTest, MissingValuesAreNull) {
  EXPECT_EQ(written([](auto pairs) { pairs.integer("a", std::optional<uint64_t>()); }),
            "$1\r\na\r\n_\r\n");
  EXPECT_EQ(written([](auto pairs) { pairs.integer("a", std::optional<uint64_t>(7)); }),
            "$1\r\na\r\n:7\r\n");
  EXPECT_EQ(written([](auto pairs) { pairs.number("a", std::nullopt); }), "$1\r\na\r\n_\r\n");
}

TEST(PairWriterTest, NumbersHaveTheDigitsAskedFor) {
  EXPECT_EQ(written([](auto pairs) { pairs.number("a", 0.1); }), "$1\r\na\r\n,0.1\r\n");
  EXPECT_EQ(written([](auto pairs) { pairs.redis_number("a", 0.1); }),
            "$1\r\na\r\n,0.10000000000000001\r\n");
}

}  // namespace
}  // namespace server
