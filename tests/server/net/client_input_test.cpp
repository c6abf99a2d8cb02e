// SPDX-License-Identifier: MIT
#include "server/net/client_input.h"

#include <gtest/gtest.h>

#include <string>

namespace server::net {
namespace {

TEST(ClientInput, WholeCommandsStayWhereTheyWereRead) {
  ClientInput input;
  const std::string fresh = "whole";
  const std::string_view joined = input.join(fresh);
  EXPECT_EQ(joined.data(), fresh.data());
  input.keep(joined.substr(5), true);
  EXPECT_EQ(input.size() + input.free_bytes(), std::string().capacity());
}

TEST(ClientInput, TheRestComesBeforeWhatFollows) {
  ClientInput input;
  input.keep(input.join("one,tw").substr(4), true);
  EXPECT_EQ(input.size(), 2u);
  std::string_view joined = input.join("o,three");
  EXPECT_EQ(joined, "two,three");
  input.keep(joined.substr(4), true);
  joined = input.join("");
  EXPECT_EQ(joined, "three");
  input.keep(joined, true);  // held back: nothing of it was executed
  joined = input.join("!");
  EXPECT_EQ(joined, "three!");
}

TEST(ClientInput, ABigCommandsMemoryGoesBack) {
  ClientInput input;
  input.keep(input.join("x"), true);
  const std::string_view joined = input.join(std::string(10 << 20, 'x'));
  EXPECT_EQ(joined.size(), (10u << 20) + 1);
  input.keep(joined.substr(joined.size() - 3), true);
  EXPECT_EQ(input.size(), 3u);
  EXPECT_LE(input.free_bytes(), 4 * ClientInput::kReadBytes);
  input.forget();
  EXPECT_LE(input.size() + input.free_bytes(), std::string().capacity());
}

TEST(ClientInput, BeforeALoginItIsBounded) {
  ClientInput input;
  EXPECT_EQ(input.room(true), ClientInput::kReadBytes);
  EXPECT_EQ(input.room(false), ClientInput::kUnknownBytesMax);
  const std::string part(15'000, 'x');
  input.keep(input.join(part), false);
  EXPECT_EQ(input.room(false), ClientInput::kUnknownBytesMax - part.size());
  input.keep(input.join(std::string(input.room(false), 'x')), false);
  EXPECT_EQ(input.size(), ClientInput::kUnknownBytesMax);
  EXPECT_EQ(input.free_bytes(), 0u);
  EXPECT_EQ(input.room(false), 0u);
}

}  // namespace
}  // namespace server::net
