// SPDX-License-Identifier: MIT
#include "protocol/reply_writer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string>

namespace {

using protocol::OutputBuffer;
using protocol::ReplyWriter;
using protocol::RespVersion;

template <class Write>
std::string written(RespVersion version, Write write) {
  OutputBuffer buffer;
  ReplyWriter writer(buffer, version);
  write(writer);
  return std::string(buffer.view());
}

template <class Write>
std::string resp2(Write write) {
  return written(RespVersion::kResp2, write);
}

template <class Write>
std::string resp3(Write write) {
  return written(RespVersion::kResp3, write);
}

template <class Write>
void expect_both(Write write, std::string_view expected) {
  EXPECT_EQ(resp2(write), expected);
  EXPECT_EQ(resp3(write), expected);
}

TEST(ReplyWriterTest, LinesAndStringsAreTheSameInBothVersions) {
  expect_both([](auto& w) { w.ok(); }, "+OK\r\n");
  expect_both([](auto& w) { w.simple("PONG"); }, "+PONG\r\n");
  expect_both([](auto& w) { w.status("PONG"); }, "+PONG\r\n");
  expect_both([](auto& w) { w.error("ERR bad size"); }, "-ERR bad size\r\n");
  expect_both([](auto& w) { w.bulk(""); }, "$0\r\n\r\n");
  expect_both([](auto& w) { w.bulk("a\r\nb"); }, "$4\r\na\r\nb\r\n");
  expect_both([](auto& w) { w.bulk("0123456789"); }, "$10\r\n0123456789\r\n");
  expect_both([](auto& w) { w.array(0); }, "*0\r\n");
  expect_both([](auto& w) { w.array(1234); }, "*1234\r\n");
}

TEST(ReplyWriterTest, IntegersOfEverySizeAreWritten) {
  for (const int64_t value :
       {int64_t{0}, int64_t{1}, int64_t{9}, int64_t{10}, int64_t{-1}, int64_t{-10}, int64_t{99},
        int64_t{100}, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    expect_both([=](auto& w) { w.integer(value); }, fmt::format(":{}\r\n", value));
  }
}

TEST(ReplyWriterTest, Resp3TypesAreConvertedForResp2) {
  const auto expect = [](auto write, std::string_view in_resp2, std::string_view in_resp3) {
    EXPECT_EQ(resp2(write), in_resp2);
    EXPECT_EQ(resp3(write), in_resp3);
  };
  expect([](auto& w) { w.null(); }, "$-1\r\n", "_\r\n");
  expect([](auto& w) { w.null_array(); }, "*-1\r\n", "_\r\n");
  expect([](auto& w) { w.map(7); }, "*14\r\n", "%7\r\n");
  expect([](auto& w) { w.set(2); }, "*2\r\n", "~2\r\n");
  expect([](auto& w) { w.push(3); }, "*3\r\n", ">3\r\n");
  expect([](auto& w) { w.boolean(true); }, ":1\r\n", "#t\r\n");
  expect([](auto& w) { w.boolean(false); }, ":0\r\n", "#f\r\n");
  expect([](auto& w) { w.verbatim("ab", "txt"); }, "$2\r\nab\r\n", "=6\r\ntxt:ab\r\n");
  expect([](auto& w) { w.big_number("-123"); }, "$4\r\n-123\r\n", "(-123\r\n");
}

TEST(ReplyWriterTest, NumbersAreFormattedAsInRedis) {
  const auto text = [](double value) { return resp3([=](auto& w) { w.number(value); }); };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(text(0.1), ",0.10000000000000001\r\n");
  EXPECT_EQ(text(3), ",3\r\n");
  EXPECT_EQ(text(1e20), ",1e+20\r\n");
  EXPECT_EQ(text(1e-7), ",9.9999999999999995e-08\r\n");
  EXPECT_EQ(text(kInfinity), ",inf\r\n");
  EXPECT_EQ(text(-kInfinity), ",-inf\r\n");
  EXPECT_EQ(text(-std::nan("")), ",nan\r\n");
  EXPECT_EQ(resp2([](auto& w) { w.number(0.1); }), "$19\r\n0.10000000000000001\r\n");
  EXPECT_EQ(resp2([](auto& w) { w.number(kInfinity); }), "$3\r\ninf\r\n");
}

TEST(ReplyWriterTest, ShortestNumbersParseToTheSameDouble) {
  const auto text = [](double value) { return resp3([=](auto& w) { w.shortest_number(value); }); };
  EXPECT_EQ(text(0.01), ",0.01\r\n");
  EXPECT_EQ(text(0), ",0\r\n");
  EXPECT_EQ(text(9.5), ",9.5\r\n");
  EXPECT_EQ(text(1e-9), ",1e-09\r\n");
  EXPECT_EQ(resp2([](auto& w) { w.shortest_number(0.01); }), "$4\r\n0.01\r\n");
  EXPECT_EQ(text(-std::numeric_limits<double>::infinity()), ",-inf\r\n");
  constexpr uint64_t kSeed = 17;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(std::strtod(text(value).c_str() + 1, nullptr), value) << "seed " << kSeed;
  }
}

TEST(ReplyWriterTest, NumbersEqualPrintfOfRandomBits) {
  constexpr uint64_t kSeed = 11;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    char expected[64];
    std::snprintf(expected, sizeof expected, ",%.17g\r\n", value);
    ASSERT_EQ(resp3([=](auto& w) { w.number(value); }), expected) << "seed " << kSeed;
  }
}

TEST(ReplyWriterTest, NoLineBreakOfACallerReachesAReplyLine) {
  constexpr uint32_t kSeed = 13;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937 random(kSeed);
  for (int i = 0; i < 100000; ++i) {
    std::string text(random() % 40, '\0');
    for (char& c : text) c = random() % 4 == 0 ? "\r\n"[random() % 2] : static_cast<char>(random());
    std::string expected = text;
    std::replace(expected.begin(), expected.end(), '\r', ' ');
    std::replace(expected.begin(), expected.end(), '\n', ' ');
    ASSERT_EQ(resp2([&](auto& w) { w.error(text); }), fmt::format("-{}\r\n", expected))
        << "seed " << kSeed;
    ASSERT_EQ(resp3([&](auto& w) { w.simple(text); }), fmt::format("+{}\r\n", expected));
  }
}

TEST(ReplyWriterTest, VersionMayChangeInTheMiddleOfAPipeline) {
  EXPECT_EQ(resp2([](auto& w) {
              w.null();
              w.set_version(RespVersion::kResp3);
              w.null();
              w.set_version(RespVersion::kResp2);
              w.null();
            }),
            "$-1\r\n_\r\n$-1\r\n");
}

}  // namespace
