// SPDX-License-Identifier: MIT
#include "core/plain_number.h"

#include <gtest/gtest.h>

namespace core {
namespace {

TEST(PlainNumber, UnambiguousCountsAreAccepted) {
  for (const char* text : {"1000000", "1e6", "1E6", "1.0e6", "10e5", "1_000_000", "1m", "1M",
                           "1000k", "0.001g", "1e+6"}) {
    EXPECT_EQ(parse_count(text), 1'000'000) << text;
  }
  EXPECT_EQ(parse_count("281474976710656"), int64_t{1} << 48);
  EXPECT_EQ(parse_count("1.5k"), 1500);
  EXPECT_EQ(parse_count("0"), 0);
  EXPECT_EQ(parse_count("-7"), -7);
}

TEST(PlainNumber, OtherCountsAreRejected) {
  for (const char* text : {"",        "x",      "k",
                           "1kb",     "1x",     "1.5",
                           "1,000",   "1_0",    "10_00",
                           "_100",    "100_",   "1000_000",
                           "1e",      "e6",     "1e-1",
                           "1.2345k", "1e400",  "0x10",
                           "+5",      " 5",     "5 ",
                           "inf",     "1e6k",   "-1k",
                           "-1e3",    "1.2.3k", "99999999999999999999k"}) {
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
  }
}

TEST(PlainNumber, RejectedRatesGetAHint) {
  EXPECT_EQ(rate_hint("0.1%"), "'0.1%' is written 0.001");
  EXPECT_EQ(rate_hint("1%"), "'1%' is written 0.01");
  EXPECT_EQ(rate_hint("0.7%"), "'0.7%' is written 0.007");
  EXPECT_EQ(rate_hint("0.0001%"), "'0.0001%' is written 1e-06");
  EXPECT_EQ(rate_hint("1/1000"), "'1/1000' is written 0.001");
  EXPECT_EQ(rate_hint("0,01"), "'0,01' is written 0.01");
}

TEST(PlainNumber, OtherTextsGetNoHint) {
  for (const char* text :
       {"",    "%",   "x%",   "-1%",   "x",    "0.01", "1/0", "1/",  "/2",  "1/2/3", ",",
        "a,b", "1%%", "nan%", "0.1 %", "500%", "100%", "0%",  "5/2", "0/5", "1,5"}) {
    EXPECT_EQ(rate_hint(text), "") << text;
  }
  EXPECT_EQ(rate_hint(std::string(1000, '1') + "%"), "");
  EXPECT_EQ(rate_hint(std::string(1000, ',')), "");
}

TEST(PlainNumber, SeparatedCountsGetAHint) {
  EXPECT_EQ(count_hint("1,000,000"), "'1,000,000' is written 1000000");
  EXPECT_EQ(count_hint("1.000"), "'1.000' is written 1000");
  EXPECT_EQ(count_hint("1'000"), "'1'000' is written 1000");
  for (const char* text : {"", ",", "1,00", "x", "1000", ",000", "999,999,999,999,999,999,999"}) {
    EXPECT_EQ(count_hint(text), "") << text;
  }
}

}  // namespace
}  // namespace core
