// SPDX-License-Identifier: MIT
//
// Loads filters that other servers have written. Each must give the same answers as on its own
// server, and must be encoded again as the same bytes.
#include "persistence/filters/filter_codec.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "persistence/bytes/crc64.h"
#include "tests/support/error_matcher.h"
#include "tests/support/filter_forms.h"
#include "tests/support/sanitized.h"
#include "tests/support/vectors.h"

namespace persistence {
namespace {

using namespace filter_forms;

std::string resealed(std::string payload) {
  const uint64_t sum = crc64(0, std::string_view(payload).substr(0, payload.size() - 8));
  payload.resize(payload.size() - 8);
  ByteWriter(payload).u64(sum);
  return payload;
}

// Payloads of all layouts, small enough to be damaged thousands of times.
std::vector<std::string> small_payloads() {
  std::vector<std::string> payloads;
  for (const char* name : {"scaled", "nonscaling", "exp4", "empty"}) {
    payloads.push_back(vectors::read(fmt::format("redisbloom/dump/{}.bin", name)));
    payloads.push_back(vectors::read(fmt::format("valkey-bloom/dump/{}.bin", name)));
  }
  for (const uint32_t expansion : {0U, 1U, 2U}) {
    const auto parameters = parameters_of(NativeLayout::kId, 0.01, 20, expansion);
    payloads.push_back(payload_of(*make(parameters, "n", 60), Packing::kIfSmaller));
    payloads.push_back(payload_of(*make(parameters, "n", 60), Packing::kNever));
  }
  return payloads;
}

TEST(FilterCodec, ForeignPayloadsAnswerAsInTheirServer) {
  for (const std::string writer : {"redisbloom", "valkey-bloom"}) {
    for (const vectors::Expected& expected : vectors::expected(writer)) {
      SCOPED_TRACE(writer + " " + expected.name);
      const auto filter = load(vectors::read(writer + "/dump/" + expected.name + ".bin"));
      ASSERT_TRUE(filter) << filter.error().message;
      filters::expect_as_described(**filter, expected);
    }
  }
}

TEST(FilterCodec, ForeignPayloadsAreWrittenUnchanged) {
  for (const std::string writer : {"redisbloom", "valkey-bloom"}) {
    for (const vectors::Expected& expected : vectors::expected(writer)) {
      SCOPED_TRACE(writer + " " + expected.name);
      const std::string theirs = vectors::read(writer + "/dump/" + expected.name + ".bin");
      const auto filter = load(theirs);
      ASSERT_TRUE(filter);
      // The last ten bytes of a DUMP payload differ, because they contain the RDB version of the
      // server that wrote the payload, and the checksum.
      const std::string ours = payload_of(**filter, Packing::kIfSmaller);
      EXPECT_EQ(ours.substr(0, ours.size() - 10), theirs.substr(0, theirs.size() - 10));
    }
  }
}

TEST(FilterCodec, FiltersEqualThoseOfOtherServers) {
  struct Case {
    std::string name;
    std::string prefix;
    double error_rate;
    uint64_t capacity;
    uint32_t expansion;
    int item_count;
  };
  const Case cases[] = {
      {"tiny", "item", 0.01, 100, 2, 50},       {"scaled", "scaled", 0.01, 10, 2, 200},
      {"nonscaling", "ns", 0.01, 50, 0, 50},    {"tight", "tight", 0.0001, 1000, 2, 500},
      {"empty", "none", 0.01, 100, 2, 0},       {"exp1", "exp1", 0.01, 10, 1, 35},
      {"exp4", "exp4", 0.1, 5, 4, 100},         {"ins", "ins", 0.005, 500, 3, 20},
      {"wide", "wide", 0.001, 100000, 2, 1000}, {"loose", "loose", 0.3, 64, 2, 64},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    for (const core::bloom::LayoutId layout : {RedisBloomLayout::kId, ValkeyBloomLayout::kId}) {
      const auto parameters = parameters_of(layout, c.error_rate, c.capacity, c.expansion);
      const auto ours = make(parameters, c.prefix, c.item_count);
      const auto writer = layout == RedisBloomLayout::kId ? "redisbloom" : "valkey-bloom";
      const auto theirs = load(vectors::read(fmt::format("{}/dump/{}.bin", writer, c.name)));
      ASSERT_TRUE(theirs);
      expect_equal(*ours, **theirs);
    }
  }
}

TEST(FilterCodec, EveryTruncationIsRejected) {
  for (const std::string& payload : small_payloads()) {
    for (size_t size = 10; size < payload.size(); ++size) {
      std::string cut = payload.substr(0, size - 10);
      append_dump_footer(cut);
      EXPECT_FALSE(load(cut)) << size;
    }
  }
}

// If a damaged payload was accepted, checks that the loaded filter works and can be encoded and
// loaded again.
void use(const core::Result<FilterPtr>& loaded) {
  if (!loaded) return;
  ScalableFilter& filter = **loaded;
  filter.add("item", support::Budget(1 << 20));
  filter.may_contain("another");
  const auto again = load(payload_of(filter, Packing::kNever));
  ASSERT_TRUE(again) << again.error().message;
  expect_equal(filter, **again);
}

TEST(FilterCodec, FlippedBytesGiveAnErrorOrAConsistentFilter) {
  constexpr uint64_t kSeed = 20;
  constexpr int kFlips = support::rounds(5000, 500);
  std::mt19937_64 random(kSeed);
  const support::Budget budget(1 << 20);
  for (const std::string& payload : small_payloads()) {
    for (int i = 0; i < kFlips; ++i) {
      std::string damaged = payload;
      // Most bytes of the payload are bits of the filter, which are always valid. The fields that
      // can be invalid are in the first bytes.
      const size_t end =
          i % 2 == 0 ? std::min<size_t>(100, payload.size() - 10) : payload.size() - 10;
      damaged[random() % end] ^= static_cast<char>(1 + random() % 255);
      use(load(resealed(std::move(damaged)), budget));
      ASSERT_FALSE(HasFatalFailure()) << "seed " << kSeed << ", flip " << i;
    }
  }
}

TEST(FilterCodec, OtherModulesAreReported) {
  std::string payload(1, static_cast<char>(kModuleType));
  ByteWriter writer(payload);
  ModuleWriter(writer, module_id("MBbloomCF", 4)).end();
  append_dump_footer(payload);
  const auto refused = load(payload);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, is_error("ERR", "'MBbloomCF' version 4"));
}

}  // namespace
}  // namespace persistence
