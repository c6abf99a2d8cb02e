// SPDX-License-Identifier: MIT
//
// Tests the two limits on a filter's memory: the server's free memory, and the configured maximum
// of a single filter.
#include "server/commands/bloom/bloom_memory.h"

#include <gmock/gmock.h>

#include <string>

#include "server/base/process/memory_monitor.h"
#include "tests/support/key_test.h"

namespace server {
namespace {

using testing::StartsWith;

class BloomMemoryTest : public KeyTest {
 protected:
  void limit_filters(const std::string& bytes) {
    ASSERT_EQ(run({"CONFIG", "SET", "bf.bloom-memory-usage-limit", bytes}), kOk);
  }
  // Adds items until BF.ADD returns an error. Returns this error.
  std::string fill(const std::string& name) {
    for (int i = 0; i < 100'000; ++i) {
      const std::string reply = run({"BF.ADD", name, std::to_string(i)});
      if (reply[0] == '-') return reply;
    }
    return "never refused";
  }
  int64_t size(const std::string& name) {
    const std::string reply = run({"BF.INFO", name, "SIZE"});
    return std::stoll(reply.substr(reply.find(':') + 1));
  }
  const std::string kTooLarge = error(kFilterTooLarge);
};

TEST_F(BloomMemoryTest, AFilterBeyondTheLimitIsNotMade) {
  limit_filters("10000");
  EXPECT_EQ(run({"BF.RESERVE", "f", "0.01", "1000000"}), kTooLarge);
  EXPECT_EQ(run({"EXISTS", "f"}), integer(0));
  EXPECT_EQ(run({"BF.RESERVE", "f", "0.01", "1000"}), kOk);
}

TEST_F(BloomMemoryTest, FilterWithoutNextLayerSaysSo) {
  ASSERT_EQ(run({"BF.RESERVE", "f", "2e-17", "1", "DELETABLE"}), kOk);
  EXPECT_EQ(fill("f"), error(core::bloom::kNoNextLayer));
  // RedisBloom has one text for all filters that cannot grow.
  ASSERT_EQ(run({"BF.RESERVE", "g", "1e-300", "1", "EXPANSION", "1", "LAYOUT", "redisbloom"}), kOk);
  EXPECT_EQ(fill("g"), error(kCannotInsert));
}

TEST_F(BloomMemoryTest, TheLimitIsOnTheWholeFilter) {
  limit_filters("10000");
  ASSERT_EQ(run({"BF.RESERVE", "f", "0.01", "1000"}), kOk);
  EXPECT_EQ(fill("f"), kTooLarge);
  EXPECT_LE(size("f"), 10'000);
}

TEST_F(BloomMemoryTest, TheLimitIsOnLoadedFiltersToo) {
  ASSERT_EQ(run({"BF.RESERVE", "f", "0.01", "100", "LAYOUT", "redisbloom"}), kOk);
  const std::string size_bytes = std::to_string(size("f") - 1);
  const std::string dumped = run({"DUMP", "f"});
  const size_t begin = dumped.find('\n') + 1;
  const std::string payload = dumped.substr(begin, dumped.size() - begin - 2);
  limit_filters(size_bytes);
  EXPECT_EQ(run({"RESTORE", "g", "0", payload}), kTooLarge);
  limit_filters(std::to_string(size("f")));
  EXPECT_EQ(run({"RESTORE", "g", "0", payload}), kOk);
}

// Later generations have their part of the limit, whatever the first ones take.
TEST_F(BloomMemoryTest, TheLimitIsOnWholeWindows) {
  ASSERT_EQ(run({"BF.RESERVE", "w", "0.01", "1000", "WINDOW", "1300", "ITEMS"}), kOk);
  limit_filters("6000");
  for (int i = 0; i < 20'000; ++i) {
    run({"BF.ADD", "w", std::to_string(i)});
    ASSERT_LE(size("w"), 6000) << i;
  }
}

TEST_F(BloomMemoryTest, ScalingIsValidatedAgainstTheLimitOnLayers) {
  ASSERT_EQ(run({"CONFIG", "SET", "bf.bloom_max_filters", "3"}), kOk);
  const auto reserve = [&](const char* capacity) {
    return run({"BF.RESERVE", "v", "0.01", "10", "VALIDATESCALETO", capacity});
  };
  EXPECT_THAT(reserve("71"), StartsWith("-ERR provided VALIDATESCALETO causes"));
  EXPECT_EQ(reserve("70"), kOk);
}

TEST_F(BloomMemoryTest, ARefusedGrowthLosesNothing) {
  limit_filters("10000");
  run({"BF.RESERVE", "f", "0.01", "1000"});
  fill("f");
  const std::string count = run({"BF.CARD", "f"});
  EXPECT_EQ(run({"BF.EXISTS", "f", "1"}), integer(1));
  EXPECT_EQ(run({"BF.ADD", "f", "another item"}), kTooLarge);
  EXPECT_EQ(run({"BF.CARD", "f"}), count);
}

TEST_F(BloomMemoryTest, ARaisedLimitLetsItGrow) {
  limit_filters("10000");
  run({"BF.RESERVE", "f", "0.01", "1000"});
  fill("f");
  limit_filters("1000000");
  EXPECT_EQ(run({"BF.ADD", "f", "another item"}), integer(1));
}

TEST_F(BloomMemoryTest, GrowthEndsAtTheMostLayers) {
  ASSERT_EQ(run({"CONFIG", "SET", "bf.bloom_max_filters", "2"}), kOk);
  ASSERT_EQ(run({"BF.RESERVE", "f", "0.01", "10"}), kOk);
  EXPECT_EQ(fill("f"), error(kTooManyLayers));
  EXPECT_NE(run({"BF.INFO", "f", "FILTERS"}).find(":2\r\n"), std::string::npos);
  EXPECT_EQ(run({"BF.EXISTS", "f", "0"}), integer(1));
  ASSERT_EQ(run({"CONFIG", "SET", "bf.bloom_max_filters", "3"}), kOk);
  EXPECT_EQ(run({"BF.ADD", "f", "another item"}), integer(1));
}

TEST_F(BloomMemoryTest, TheServersMemoryIsALimitToo) {
  memory_.set_limit(memory_.refresh() + (1 << 20));
  EXPECT_THAT(run({"BF.RESERVE", "f", "0.001", "100000000"}), StartsWith("-"));
  EXPECT_EQ(run({"EXISTS", "f"}), integer(0));
  memory_.set_limit(0);
  EXPECT_EQ(run({"BF.RESERVE", "f", "0.001", "100000"}), kOk);
}

TEST_F(BloomMemoryTest, SizesThatHaveNoNumberAreRefused) {
  EXPECT_THAT(run({"BF.RESERVE", "f", "0.0000001", "9223372036854775807"}), StartsWith("-ERR"));
  EXPECT_EQ(run({"EXISTS", "f"}), integer(0));
}

TEST_F(BloomMemoryTest, AllGenerationsOfAWindowCount) {
  ASSERT_EQ(run({"BF.RESERVE", "plain", "0.01", "1000"}), kOk);
  limit_filters(std::to_string(size("plain") * 3 / 2));
  EXPECT_EQ(run({"BF.RESERVE", "again", "0.01", "1000"}), kOk);
  EXPECT_EQ(run({"BF.RESERVE", "w", "0.01", "1000", "WINDOW", "10", "GENERATIONS", "8"}),
            kTooLarge);
}

TEST_F(BloomMemoryTest, AFilterThatIsLoadedKeepsTheLimit) {
  ASSERT_EQ(run({"BF.RESERVE", "f", "0.01", "100000"}), kOk);
  const std::string dumped = run({"DUMP", "f"});
  const size_t start = dumped.find('\n') + 1;
  const std::string payload = dumped.substr(start, dumped.size() - start - 2);
  limit_filters("10000");
  EXPECT_THAT(run({"RESTORE", "g", "0", payload}), StartsWith("-"));
  EXPECT_EQ(run({"EXISTS", "g"}), integer(0));
  limit_filters("1000000");
  EXPECT_EQ(run({"RESTORE", "g", "0", payload}), kOk);
}

}  // namespace
}  // namespace server
