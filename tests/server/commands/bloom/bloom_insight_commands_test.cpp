// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <map>

#include "core/bloom/arrays/bit_array.h"
#include "core/bloom/layouts.h"
#include "core/bloom/parameters.h"
#include "core/keyspace/keyspace.h"
#include "protocol/error_texts.h"
#include "server/base/config/config.h"
#include "server/commands/bloom/bloom_access.h"
#include "server/commands/bloom/bloom_options.h"
#include "tests/support/error_matcher.h"
#include "tests/support/key_test.h"

namespace server {
namespace {

class BloomInsightCommandsTest : public KeyTest {
 protected:
  // The values in a reply of BF.PLAN or BF.STATS by their labels, without nested arrays.
  using Figures = std::map<std::string, std::string>;

  // Returns the line of `reply` that begins at `*at`, and advances `*at` to the next line.
  static std::string take_line(const std::string& reply, size_t* at) {
    const size_t end = reply.find("\r\n", *at);
    std::string line = reply.substr(*at, end - *at);
    *at = end + 2;
    return line;
  }
  // Returns the text of a bulk string. For another scalar, returns its line without the type byte.
  static std::string take_scalar(const std::string& reply, size_t* at) {
    const std::string line = take_line(reply, at);
    if (line.front() != '$' || line == "$-1") return line.front() == '$' ? "null" : line.substr(1);
    return take_line(reply, at);
  }
  // Reads a RESP2 reply that alternates labels and values. Stops at the first value that is an
  // array.
  static Figures figures(const std::string& reply, size_t at = 0) {
    Figures found;
    take_line(reply, &at);
    while (at < reply.size()) {
      const std::string label = take_scalar(reply, &at);
      if (at >= reply.size() || reply[at] == '*') break;
      found[label] = take_scalar(reply, &at);
    }
    return found;
  }
  Figures plan(std::vector<std::string> words) {
    words.insert(words.begin(), "BF.PLAN");
    return figures(run(words));
  }
  Figures stats(const std::string& key) { return figures(run({"BF.STATS", key})); }

  void add_items(const std::string& key, int count) {
    std::vector<std::string> command{"BF.MADD", key};
    for (int i = 0; i < count; ++i) command.push_back("item:" + std::to_string(i));
    run(command);
  }
};

TEST_F(BloomInsightCommandsTest, DebugShowsTheLayers) {
  run({"BF.RESERVE", "k", "0.01", "10", "EXPANSION", "2", "LAYOUT", "REDISBLOOM"});
  for (int i = 0; i < 30; ++i) run({"BF.ADD", "k", std::to_string(i)});
  const std::string reply = run({"BF.DEBUG", "k"});
  EXPECT_TRUE(reply.starts_with("*3\r\n$7\r\nsize:")) << reply;
  EXPECT_NE(reply.find("bytes:16 bits:128 hashes:8 hashwidth:64 capacity:10 size:10 ratio:0.005"),
            std::string::npos)
      << reply;
  EXPECT_NE(reply.find(" capacity:20 size:"), std::string::npos) << reply;
  EXPECT_EQ(run({"BF.DEBUG", "none"}), error(kFilterNotFound));
  run({"SET", "s", "v"});
  EXPECT_TRUE(run({"BF.DEBUG", "s"}).starts_with("-WRONGTYPE"));
}

// Dumps of old RedisBloom releases contain filters that use 32-bit hashes.
TEST_F(BloomInsightCommandsTest, DebugTellsOfHashesOf32Bits) {
  const core::UnlimitedMemory budget;
  core::bloom::FilterParameters parameters;
  parameters.layout = core::bloom::RedisBloomLayout::kId;
  parameters.hashes_32_bits = true;
  auto filter = core::bloom::ScalableFilter::create(parameters, budget);
  ASSERT_TRUE(filter.has_value());
  put("old", "").set_filter(std::move(*filter));
  const std::string reply = run({"BF.DEBUG", "old"});
  EXPECT_NE(reply.find(" hashwidth:32 "), std::string::npos) << reply;
  EXPECT_EQ(reply.find(" hashwidth:64 "), std::string::npos) << reply;
}

TEST_F(BloomInsightCommandsTest, PlanIsFlatInResp2AndAMapInResp3) {
  const std::string native = bulk("layout") + bulk("native-2") + bulk("bytes") + integer(176) +
                             bulk("bits") + integer(1024) + bulk("hash count") + integer(5) +
                             bulk("cache lines per lookup") + integer(1) + bulk("bits per item");
  const std::string rate = bulk("error rate of the first layer");
  const std::string scaling = bulk("scaling");
  std::string fills;
  for (const char* const fill : {"0.001%", "0.01%", "0.1%", "1%", "100%"}) {
    fills += bulk(fill) + integer(128);
  }
  const std::string end = bulk("disk bytes") + integer(352) + bulk("resident bytes");
  EXPECT_EQ(run({"BF.PLAN", "0.01", "100", "NONSCALING"}).substr(0, 5), "*20\r\n");
  EXPECT_EQ(run({"bf.plan", "0.02", "100", "tightening", "0.5"}),
            "*20\r\n" + native + bulk("10.24") + rate + bulk("0.01") + scaling + integer(1) + end +
                "*10\r\n" + fills);
  run({"HELLO", "3"});
  EXPECT_EQ(run({"BF.PLAN", "0.02", "100", "TIGHTENING", "0.5"}),
            "%10\r\n" + native + ",10.24\r\n" + rate + ",0.01\r\n" + scaling + "#t\r\n" + end +
                "%5\r\n" + fills);
}

// BF.PLAN reports how many bytes of a filter's array are resident when the filter contains 0.001 %,
// 0.1 % or 100 % of its capacity. docs/bloom_math.md has the measurement.
TEST_F(BloomInsightCommandsTest, PlanTellsWhatIsResident) {
  const std::string reply = run({"BF.PLAN", "0.01", "200000000", "NONSCALING"});
  const auto resident_at = [&](const std::string& fill) {
    size_t at = reply.find(bulk(fill)) + bulk(fill).size() + 1;
    return std::stod(take_line(reply, &at));
  };
  const double bytes = std::stod(plan({"0.01", "200000000", "NONSCALING"}).at("bytes"));
  EXPECT_NEAR(resident_at("0.001%") / bytes, 0.033, 0.01);
  EXPECT_NEAR(resident_at("0.1%") / bytes, 0.965, 0.03);
  EXPECT_NEAR(resident_at("100%") / bytes, 1, 0.001);
}

TEST_F(BloomInsightCommandsTest, StatsTellWhatIsLeftBeforeGrowth) {
  run({"BF.RESERVE", "k", "0.01", "100", "LAYOUT", "REDISBLOOM"});
  EXPECT_EQ(stats("k").at("items left"), "100");
  const uint64_t bytes = std::stoull(stats("k").at("bytes"));
  const uint64_t next = std::stoull(stats("k").at("next layer bytes"));
  add_items("k", 100);
  const Figures full = stats("k");
  const uint64_t left = std::stoull(full.at("items left"));
  EXPECT_EQ(left, 100 - std::stoull(full.at("items")));
  for (int i = 100; std::stoull(stats("k").at("bytes")) == bytes; ++i) {
    ASSERT_LT(i, 120) << "it never grew";
    run({"BF.ADD", "k", "item:" + std::to_string(i)});
  }
  EXPECT_NEAR(std::stod(stats("k").at("bytes")) - static_cast<double>(bytes),
              static_cast<double>(next), 400);
  EXPECT_EQ(stats("k").at("items left"), "199");
  run({"BF.RESERVE", "fixed", "0.01", "10", "NONSCALING"});
  EXPECT_EQ(stats("fixed").at("items left"), "10");
  EXPECT_EQ(stats("fixed").at("next layer bytes"), "null");
  run({"BF.RESERVE", "window", "0.01", "1000", "WINDOW", "600"});
  EXPECT_EQ(stats("window").at("items left"), "null");
}

TEST_F(BloomInsightCommandsTest, PlanTellsWhatReserveMakes) {
  for (const core::bloom::LayoutRow& row : core::bloom::kLayoutRows) {
    const std::string layout(row.name);
    const std::vector<NamedValue> pairs{{"bf-layout", layout}};
    ASSERT_TRUE(config_.set(pairs)) << layout;
    for (const std::string capacity : {"1", "100", "12345", "3000000"}) {
      for (const std::string rate : {"0.3", "0.01", "0.000001"}) {
        const Figures figures = plan({rate, capacity});
        EXPECT_EQ(figures, plan({rate, capacity, "LAYOUT", layout}));
        EXPECT_EQ(figures.at("layout"), layout == "native" ? "native-2" : layout);
        run({"DEL", "k"});
        ASSERT_EQ(run({"BF.RESERVE", "k", rate, capacity}), kOk);
        EXPECT_EQ(run({"BF.INFO", "k", "SIZE"}), array({":" + figures.at("bytes") + "\r\n"}));
        const Figures made = stats("k");
        for (const std::string label : {"layout", "bytes", "bits", "hash count"}) {
          EXPECT_EQ(made.at(label), figures.at(label)) << layout << rate << capacity << label;
        }
        EXPECT_EQ(made.at("cache lines per lookup"), figures.at("cache lines per lookup"));
      }
    }
  }
}

TEST_F(BloomInsightCommandsTest, PlanOfAnySizeTakesNoMemory) {
  const Figures big = plan({"0.01", "10000000000", "NONSCALING"});
  EXPECT_NEAR(std::stod(big.at("bytes")), 12.4e9, 0.2e9);
  EXPECT_NEAR(std::stod(plan({"0.01", "10000000000"}).at("bytes")), 14.1e9, 1e9);
  EXPECT_EQ(big.at("scaling"), "0");
  EXPECT_EQ(big.at("error rate of the first layer"), "0.01");
  EXPECT_GT(std::stod(plan({"0.01", "281474976710656"}).at("bytes")), 3e14);
  EXPECT_EQ(plan({"0.01", "100", "EXPANSION", "0"}).at("scaling"), "0");
  // BF.PLAN caps the error rate of a layer at 0.25, as BF.RESERVE does here and in RedisBloom.
  EXPECT_EQ(plan({"0.9", "100", "NONSCALING"}).at("error rate of the first layer"), "0.25");
  EXPECT_EQ(keyspace_.db_size(0), 0U);
  EXPECT_EQ(core::bloom::mapped_bytes(), 0U);
}

TEST_F(BloomInsightCommandsTest, ProbesOfOtherLayoutsCostALineEach) {
  const Figures classic = plan({"0.001", "1000000", "LAYOUT", "RedisBloom"});
  EXPECT_EQ(classic.at("cache lines per lookup"), classic.at("hash count"));
  EXPECT_EQ(plan({"0.000001", "10", "LAYOUT", "valkey-bloom"}).at("cache lines per lookup"), "1");
  EXPECT_EQ(plan({"0.000001", "1000000"}).at("cache lines per lookup"), "3");
}

TEST_F(BloomInsightCommandsTest, PlanRefusesWhatReserveRefuses) {
  const std::string arity = error(protocol::wrong_arity("bf.plan"));
  EXPECT_EQ(run({"BF.PLAN", "0.01"}), arity);
  EXPECT_EQ(run({"BF.PLAN", "x", "x"}), error(kBadErrorRate));
  EXPECT_EQ(run({"BF.PLAN", "1", "x"}), error(core::bloom::kErrorRateRange));
  EXPECT_EQ(run({"BF.PLAN", "0.01", "x"}), error(kBadCapacity));
  EXPECT_EQ(run({"BF.PLAN", "0.01", "281474976710657"}), error(kCapacityRange));
  EXPECT_EQ(run({"BF.PLAN", "0.01", "9", "EXPANSION"}), error(kNoExpansion));
  EXPECT_EQ(run({"BF.PLAN", "0.01", "9", "EXPANSION", "2", "NONSCALING"}), error(kCannotExpand));
  EXPECT_EQ(run({"BF.PLAN", "0.01", "9", "TIGHTENING", "1"}), error(core::bloom::kTighteningRange));
  EXPECT_EQ(run({"BF.PLAN", "0.01", "9", "SEED", std::string(32, 's')}),
            error("Unknown argument received: 'SEED'"));
  EXPECT_EQ(run({"BF.PLAN", "0.01", "9", "LAYOUT"}), arity);
  const auto layout = is_error("ERR", core::bloom::layout_names(", ", " or "));
  EXPECT_THAT(run({"BF.PLAN", "0.01", "9", "LAYOUT", "classic"}), layout);
  EXPECT_THAT(run({"BF.PLAN", "0.01", "9", "LAYOUT", "native", "LAYOUT", "classic"}), layout);
  const std::vector<std::string> impossible{"1e-300", "281474976710656"};
  const std::string refusal = run({"BF.RESERVE", "k", impossible[0], impossible[1]});
  EXPECT_EQ(run({"BF.PLAN", impossible[0], impossible[1]}), refusal);
  EXPECT_EQ(refusal.substr(0, 5), "-ERR ");
}

TEST_F(BloomInsightCommandsTest, StatsFollowWhatWasAdded) {
  run({"BF.RESERVE", "k", "0.01", "10000"});
  EXPECT_EQ(stats("k").at("fill ratio"), "0");
  EXPECT_EQ(stats("k").at("estimated cardinality"), "0");
  EXPECT_EQ(stats("k").at("tightening ratio"), "null");
  add_items("k", 5000);
  const Figures figures = stats("k");
  EXPECT_NEAR(std::stod(figures.at("items")), 5000, 10);
  EXPECT_NEAR(std::stod(figures.at("estimated cardinality")), 5000, 100);
  EXPECT_EQ(figures.at("capacity"), "10000");
  EXPECT_EQ(figures.at("error rate"), "0.01");
  EXPECT_EQ(figures.at("expansion"), "2");
  EXPECT_GT(std::stod(figures.at("fill ratio")), 0.2);
  EXPECT_LT(std::stod(figures.at("fill ratio")), 0.4);
  EXPECT_GT(std::stod(figures.at("predicted error rate")), 0);
  EXPECT_LT(std::stod(figures.at("predicted error rate")), 0.01);
}

TEST_F(BloomInsightCommandsTest, StatsTellEachLayer) {
  run({"BF.RESERVE", "k", "0.01", "100", "EXPANSION", "3", "TIGHTENING", "0.3"});
  add_items("k", 300);
  const std::string reply = run({"BF.STATS", "k"});
  EXPECT_EQ(reply.substr(0, 5), "*34\r\n");
  const Figures whole = figures(reply);
  EXPECT_EQ(whole.at("capacity"), "400");
  EXPECT_EQ(whole.at("tightening ratio"), "0.3");
  const size_t layers = reply.find(bulk("layers") + "*2\r\n*16\r\n");
  ASSERT_NE(layers, std::string::npos);
  const size_t first = reply.find("*16\r\n", layers);
  const size_t second = reply.find("*16\r\n", first + 5);
  ASSERT_NE(second, std::string::npos);
  const Figures oldest = figures(reply.substr(0, second), first);
  const Figures newest = figures(reply, second);
  EXPECT_EQ(oldest.at("capacity"), "100");
  EXPECT_EQ(oldest.at("items"), "100");
  EXPECT_EQ(oldest.at("error rate"), "0.006999999999999999");
  EXPECT_EQ(newest.at("capacity"), "300");
  EXPECT_EQ(newest.at("hash count"), whole.at("hash count"));
  EXPECT_EQ(std::stoul(oldest.at("items")) + std::stoul(newest.at("items")),
            std::stoul(whole.at("items")));
  EXPECT_EQ(std::stoul(oldest.at("bits")) + std::stoul(newest.at("bits")),
            std::stoul(whole.at("bits")));
}

TEST_F(BloomInsightCommandsTest, StatsOfNonScalingFilterInResp3) {
  run({"HELLO", "3"});
  run({"BF.RESERVE", "k", "0.02", "100", "NONSCALING"});
  const std::string reply = run({"BF.STATS", "k"});
  EXPECT_EQ(reply.substr(0, 5), "%17\r\n");
  const auto has = [&](const std::string& part) {
    return reply.find(part) != std::string::npos ? "" : part;
  };
  EXPECT_EQ(has(bulk("error rate") + ",0.02\r\n"), "");
  EXPECT_EQ(has(bulk("tightening ratio") + "_\r\n"), "");
  EXPECT_EQ(has(bulk("expansion") + "_\r\n"), "");
  EXPECT_EQ(has(bulk("layers") + "*1\r\n%8\r\n" + bulk("capacity") + ":100\r\n"), "");
}

TEST_F(BloomInsightCommandsTest, StatsNeedAFilter) {
  EXPECT_EQ(run({"BF.STATS", "k"}), error(kFilterNotFound));
  run({"SET", "k", "v"});
  EXPECT_EQ(run({"BF.STATS", "k"}), error(kWrongType));
  EXPECT_EQ(run({"BF.STATS", "k", "x"}), error(protocol::wrong_arity("bf.stats")));
}

}  // namespace
}  // namespace server
