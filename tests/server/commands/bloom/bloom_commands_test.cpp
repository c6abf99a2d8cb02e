// SPDX-License-Identifier: MIT

#include <gmock/gmock.h>

#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/bloom/arrays/bit_array.h"
#include "core/bloom/layouts.h"
#include "core/bloom/parameters.h"
#include "core/keyspace/keyspace.h"
#include "protocol/error_texts.h"
#include "protocol/reply_writer.h"
#include "server/base/config/config.h"
#include "server/base/config/event_class.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/memory_monitor.h"
#include "server/base/process/server_state.h"
#include "server/commands/bloom/bloom_access.h"
#include "server/commands/bloom/bloom_items.h"
#include "server/commands/bloom/bloom_memory.h"
#include "server/commands/bloom/bloom_options.h"
#include "server/commands/bloom/bloom_statistics.h"
#include "server/session/pubsub/key_events.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"
#include "tests/support/set_option.h"

namespace server {
namespace {

class BloomCommandsTest : public CommandTest {
 protected:
  struct Case {
    std::vector<std::string> command;
    ::testing::Matcher<const std::string&> reply;
  };
  void expect_all(const std::vector<Case>& cases) {
    for (const Case& one : cases) {
      std::string line;
      for (const std::string& word : one.command) line += word + " ";
      EXPECT_THAT(run(one.command), one.reply) << line;
    }
  }
  void configure(const std::string& name, const std::string& value) {
    const std::vector<NamedValue> pairs{{name, value}};
    ASSERT_TRUE(config_.set(pairs)) << name;
  }
  std::string info(const std::string& key, const std::string& field) {
    return run({"BF.INFO", key, field});
  }
  static std::string arity(const std::string& name) { return error(protocol::wrong_arity(name)); }
  uint64_t changes() const { return state_.changes.load(); }
  // Returns the names of the key events that were published since the last call.
  std::vector<std::string> events() {
    std::vector<std::string> names;
    while (const auto delivery = pubsub_.take(0)) {
      const std::string& payload = *delivery->message->payload;
      names.push_back(payload.substr(0, payload.size() - 2));
    }
    return names;
  }

  const std::string kYes = integer(1);
  const std::string kNo = integer(0);
  const std::string kFull = error(kFilterFull);
  const std::string kMissing = error(kFilterNotFound);
};

TEST_F(BloomCommandsTest, ReserveChecksItsNumbersBeforeTheKey) {
  const std::string rate = error(core::bloom::kErrorRateRange);
  const std::string capacity = error(kCapacityRange);
  const auto expansion = is_error("ERR", "expansion must be in the range [0, 32768]");
  run({"SETBIT", "s", "0", "1"});
  expect_all({
      {{"BF.RESERVE", "s", "x", "x"}, error(kBadErrorRate)},
      {{"BF.RESERVE", "k", "nan", "9"}, error(kBadErrorRate)},
      {{"BF.RESERVE", "k", "0.1%", "9"}, error("ERR bad error rate: '0.1%' is written 0.001")},
      {{"BF.RESERVE", "k", "0.01", "1,000"}, error("ERR bad capacity: '1,000' is written 1000")},
      {{"BF.INSERT", "k", "ERROR", "1%", "ITEMS", "a"},
       error("Bad error rate: '1%' is written 0.01")},
      {{"BF.RESERVE", "k", "0", "x"}, rate},
      {{"BF.RESERVE", "k", "1", "9"}, rate},
      {{"BF.RESERVE", "k", "inf", "9"}, rate},
      {{"BF.RESERVE", "k", "0.01", "+9"}, error(kBadCapacity)},
      {{"BF.RESERVE", "k", "0.01", "0"}, capacity},
      {{"BF.RESERVE", "k", "0.01", "-1"}, capacity},
      {{"BF.RESERVE", "k", "0.01", "281474976710657"}, capacity},
      {{"BF.RESERVE", "k", "0.01", "9", "EXPANSION"}, error(kNoExpansion)},
      {{"BF.RESERVE", "k", "0.01", "9", "EXPANSION", "x"}, is_error("ERR", "bad expansion")},
      {{"BF.RESERVE", "k", "0.01", "9", "EXPANSION", "-1"}, expansion},
      {{"BF.RESERVE", "k", "0.01", "9", "EXPANSION", "32769"}, expansion},
      {{"BF.RESERVE", "k", "0.01", "9", "NOSCALING"},
       error("Unknown argument received: 'NOSCALING'")},
      {{"BF.RESERVE", "k", "0.01", "9", "SEED"}, arity("bf.reserve")},
      {{"BF.RESERVE", "k", "0.01"}, arity("bf.reserve")},
      {{"BF.RESERVE", "s", "0.01", "9"}, error(kWrongType)},
  });
  const std::string both = error(kCannotExpand);
  EXPECT_EQ(run({"BF.RESERVE", "k", "0.01", "9", "NONSCALING", "EXPANSION", "2"}), both);
  EXPECT_EQ(run({"BF.RESERVE", "k", "0.01", "9", "EXPANSION", "2", "NONSCALING"}), both);
  EXPECT_EQ(keyspace_.db_size(0), 1U);
}

TEST_F(BloomCommandsTest, ReserveTakesItsOptionsInAnyOrder) {
  expect_all({
      {{"BF.RESERVE", "a", "1.0E-4", "9", "tightening", "0.3", "expansion", "4"}, kOk},
      {{"BF.RESERVE", "a", "0.1", "9"}, is_error("ERR", "exists")},
      {{"BF.INFO", "a", "EXPANSION"}, array({integer(4)})},
      {{"BF.RESERVE", "b", "0x0.1", "9", "EXPANSION", "0", "NONSCALING"}, kOk},
      {{"BF.INFO", "b", "EXPANSION"}, array({kNull})},
      {{"BF.RESERVE", "NONSCALING", "0.01", "9"}, kOk},
      {{"BF.INFO", "NONSCALING", "EXPANSION"}, array({integer(2)})},
      {{"BF.RESERVE", "c", "0.01", "9", "SEED", std::string(32, '\1'), "EXPANSION", "3"}, kOk},
      {{"BF.RESERVE", "d", "0.01", "9", "SEED", "short"}, is_error("ERR", "seed")},
      {{"BF.RESERVE", "d", "0.01", "9", "TIGHTENING", "x"}, is_error("ERR", "bad tightening")},
      {{"BF.RESERVE", "d", "0.01", "9", "TIGHTENING", "1"}, error(core::bloom::kTighteningRange)},
  });
}

TEST_F(BloomCommandsTest, ScaleIsValidatedOnPaper) {
  configure("bf.bloom-memory-usage-limit", "10mb");
  expect_all({
      {{"BF.INSERT", "k", "VALIDATESCALETO", "0"}, error(core::bloom::kCapacityIsZero)},
      {{"BF.INSERT", "k", "VALIDATESCALETO", "-1"}, error(kBadCapacity)},
      {{"BF.INSERT", "k", "VALIDATESCALETO", "x"}, error(kBadCapacity)},
      {{"BF.INSERT", "k", "VALIDATESCALETO", "9", "NONSCALING"},
       is_error("ERR", "NONSCALING and VALIDATESCALETO")},
      {{"BF.INSERT", "k", "VALIDATESCALETO", "1000000000000"}, is_error("ERR", "memory limit")},
      {{"BF.INSERT", "k", "VALIDATESCALETO", "100000", "EXPANSION", "1", "CAPACITY", "1",
        "TIGHTENING", "0.1"},
       is_error("ERR", "VALIDATESCALETO causes false positive")},
      {{"BF.CARD", "k"}, kNo},
      {{"BF.INSERT", "k", "VALIDATESCALETO", "10000", "ITEMS", "a"}, array({kYes})},
  });
}

TEST_F(BloomCommandsTest, AddAndExistsAnswerWhetherTheItemIsKnown) {
  run({"SETBIT", "s", "0", "1"});
  expect_all({
      {{"BF.ADD", "k", "a"}, kYes},
      {{"BF.ADD", "k", "a"}, kNo},
      {{"BF.MADD", "k", "a", "b", "b"}, array({kNo, kYes, kNo})},
      {{"BF.EXISTS", "k", "b"}, kYes},
      {{"BF.EXISTS", "none", "b"}, kNo},
      {{"BF.MEXISTS", "k", "a", "zz", "b"}, array({kYes, kNo, kYes})},
      {{"BF.MEXISTS", "none", "a", "b"}, array({kNo, kNo})},
      {{"BF.CARD", "k"}, integer(2)},
      {{"BF.CARD", "none"}, kNo},
      {{"BF.ADD", "k", ""}, kYes},
      {{"BF.ADD", "k", std::string("\0\r\n", 3)}, kYes},
      {{"BF.EXISTS", "k", std::string("\0\r\n", 3)}, kYes},
      {{"BF.ADD", "s", "a"}, error(kWrongType)},
      {{"BF.MADD", "s", "a"}, error(kWrongType)},
      {{"BF.INSERT", "s", "ITEMS", "a"}, error(kWrongType)},
      {{"BF.CARD", "s"}, error(kWrongType)},
      {{"BF.INFO", "s"}, error(kWrongType)},
      {{"BF.EXISTS", "s", "a"}, kNo},
      {{"BF.MEXISTS", "s", "a", "b"}, array({kNo, kNo})},
      {{"BF.ADD", "k"}, arity("bf.add")},
      {{"BF.MADD", "k"}, arity("bf.madd")},
      {{"BF.EXISTS", "k", "a", "b"}, arity("bf.exists")},
  });
}

TEST_F(BloomCommandsTest, FullFilterEndsTheList) {
  run({"BF.RESERVE", "k", "0.0001", "3", "NONSCALING"});
  expect_all({
      {{"BF.MADD", "k", "a", "b", "a", "c", "d", "e"}, array({kYes, kYes, kNo, kYes, kFull})},
      {{"BF.ADD", "k", "f"}, kFull},
      {{"BF.ADD", "k", "a"}, kNo},
      {{"BF.INSERT", "k", "ITEMS", "b", "f", "a"}, array({kNo, kFull})},
      {{"BF.CARD", "k"}, integer(3)},
  });
}

TEST_F(BloomCommandsTest, FilterThatCannotGrowStillKnowsItsItems) {
  configure("bf.bloom-memory-usage-limit", "300");
  ASSERT_EQ(run({"BF.RESERVE", "k", "0.0001", "4"}), kOk);
  ASSERT_EQ(run({"BF.MADD", "k", "a", "b", "c", "d"}), array({kYes, kYes, kYes, kYes}));
  const std::string limit = error(kFilterTooLarge);
  EXPECT_EQ(run({"BF.MADD", "k", "e", "a", "f"}), array({limit, kNo, limit}));
  EXPECT_EQ(run({"BF.ADD", "k", "e"}), limit);
  EXPECT_EQ(run({"BF.RESERVE", "big", "0.01", "10000"}), limit);
  configure("bf.bloom-memory-usage-limit", "0");
  memory_.set_limit(1);
  EXPECT_EQ(run({"BF.INFO", "k", "ITEMS"}), array({integer(4)}));
}

TEST_F(BloomCommandsTest, ReservationThatCannotFitNamesItsSize) {
  const std::string reply = run({"BF.RESERVE", "k", "0.01", "281474976710656"});
  EXPECT_TRUE(reply.starts_with("-ERR Insufficient memory to create filter of ")) << reply;
  EXPECT_EQ(keyspace_.db_size(0), 0U);
}

TEST_F(BloomCommandsTest, FiltersAreMadeWithoutAskingTheSystemForEach) {
  constexpr uint64_t kFilters = 2000;
  run({"BF.RESERVE", "first", "0.01", "100"});
  uint64_t measurements = 0;
  memory_.set_exempt([&measurements]() -> uint64_t {
    ++measurements;
    return 0;
  });
  memory_.tick();
  EXPECT_EQ(measurements, 1U);
  for (uint64_t i = 0; i < kFilters; ++i) run({"BF.ADD", "f" + std::to_string(i), "item"});
  EXPECT_LT(measurements, kFilters / 100);
}

// With several I/O threads, adds look the items up before they lock the key exclusively.
TEST_F(BloomCommandsTest, AddsGiveTheSameFilterWithSeveralThreads) {
  std::mt19937_64 random(35);
  for (const std::string options : {"", "DELETABLE", "NONSCALING", "WINDOW 40 ITEMS"}) {
    std::istringstream words(options);
    const auto run_on = [&](const std::string& key, std::vector<std::string> command) {
      config_.replace(OptionId::kIoThreads, key == "one" ? "1" : "4");
      command.insert(command.begin() + 1, key);
      return run(command);
    };
    run({"DEL", "one", "several"});
    std::vector<std::string> create{"BF.INSERT", "CAPACITY", "50", "ERROR", "0.02"};
    for (std::string word; words >> word;) create.push_back(word);
    create.insert(create.end(), {"ITEMS", "first"});
    EXPECT_EQ(run_on("several", create), run_on("one", create)) << options;
    for (int i = 0; i < 300; ++i) {
      const size_t count = random() % 3 == 0 ? 1 + random() % 200 : 1;
      std::vector<std::string> command{count == 1 ? "BF.ADD" : "BF.MADD"};
      for (size_t item = 0; item < count; ++item) {
        command.push_back(std::to_string(random() % 3000));
      }
      if (options == "DELETABLE" && random() % 4 == 0) command.front() = "BF.DEL";
      ASSERT_EQ(run_on("several", command), run_on("one", command)) << options;
    }
    EXPECT_EQ(run({"DUMP", "several"}), run({"DUMP", "one"})) << options;
  }
}

TEST_F(BloomCommandsTest, InsertTakesOptionsUpToItems) {
  expect_all({
      {{"BF.INSERT", "k", "NOCREATE", "ITEMS", "a"}, kMissing},
      {{"BF.INSERT", "k", "ITEMS"}, arity("bf.insert")},
      {{"BF.INSERT", "k", "CAPACITY"}, arity("bf.insert")},
      {{"BF.INSERT", "k", "EXPANSION"}, arity("bf.insert")},
      {{"BF.INSERT", "k", "ERROR", "x", "ITEMS", "a"}, error(kInsertErrorRate)},
      {{"BF.INSERT", "k", "ERROR", "1", "ITEMS", "a"}, error(kInsertErrorRate)},
      {{"BF.INSERT", "k", "CAPACITY", "0", "ITEMS", "a"}, error(kInsertCapacity)},
      {{"BF.INSERT", "k", "EXPANSION", "32769", "ITEMS", "a"}, error(kInsertExpansion)},
      {{"BF.INSERT", "k", "NO", "ITEMS", "a"}, error("Unknown argument received: 'NO'")},
      {{"BF.INSERT", "q", "CAPACITY", "1", "CAPACITY", "9", "ITEMS", "CAPACITY", "20"},
       array({kYes, kYes})},
      {{"BF.INFO", "q", "CAPACITY"}, array({integer(9)})},
      {{"BF.INSERT", "q", "CAPACITY", "5", "NOCREATE", "ITEMS", "20", "x"}, array({kNo, kYes})},
      {{"BF.INSERT", "t", "NONSCALING", "EXPANSION", "3", "ITEMS", "a"}, array({kYes})},
      {{"BF.INFO", "t", "EXPANSION"}, array({kNull})},
      {{"BF.INSERT", "r"}, arity("bf.insert")},
      {{"BF.INSERT", "r", "CAPACITY", "30"}, arity("bf.insert")},
      {{"EXISTS", "r"}, integer(0)},
  });
}

TEST_F(BloomCommandsTest, InfoHasTheFieldsOfRedisBloomInItsOrder) {
  run({"BF.RESERVE", "k", "0.01", "100", "NONSCALING"});
  run({"BF.ADD", "k", "a"});
  const std::string size = info("k", "size").substr(4);
  const std::string body = "+Capacity\r\n:100\r\n+Size\r\n" + size +
                           "+Number of filters\r\n:1\r\n+Number of items inserted\r\n:1\r\n"
                           "+Expansion rate\r\n";
  EXPECT_EQ(run({"BF.INFO", "k"}), "*10\r\n" + body + kNull);
  EXPECT_EQ(run({"BF.INFO", "none", "NOSUCH"}), kMissing);
  EXPECT_THAT(info("k", "NOSUCH"), is_error("Invalid", "information"));
  EXPECT_EQ(run({"BF.INFO", "k", "ITEMS", "SIZE"}), arity("bf.info"));
  client_->session->client->resp = protocol::RespVersion::kResp3;
  EXPECT_EQ(run({"BF.INFO", "k"}), "%5\r\n" + body + "_\r\n");
  EXPECT_EQ(info("k", "Items"), "%1\r\n+Number of items inserted\r\n:1\r\n");
}

TEST_F(BloomCommandsTest, Resp3AnswersWithBooleans) {
  client_->session->client->resp = protocol::RespVersion::kResp3;
  expect_all({
      {{"BF.ADD", "k", "a"}, "#t\r\n"},
      {{"BF.MADD", "k", "a", "b"}, "*2\r\n#f\r\n#t\r\n"},
      {{"BF.EXISTS", "k", "a"}, "#t\r\n"},
      {{"BF.MEXISTS", "k", "a", "zz"}, "*2\r\n#t\r\n#f\r\n"},
      {{"BF.CARD", "k"}, integer(2)},
  });
}

TEST_F(BloomCommandsTest, DefaultsComeFromTheConfiguration) {
  configure("bf-initial-size", "500");
  configure("bf-expansion-factor", "0");
  run({"BF.ADD", "k", "a"});
  EXPECT_EQ(info("k", "CAPACITY"), array({integer(500)}));
  EXPECT_EQ(info("k", "EXPANSION"), array({kNull}));
  run({"BF.RESERVE", "l", "0.01", "10", "EXPANSION", "3"});
  EXPECT_EQ(info("l", "EXPANSION"), array({integer(3)}));
}

TEST_F(BloomCommandsTest, EachLayoutFindsWhatItWasGiven) {
  std::vector<std::string> layouts;
  for (const core::bloom::LayoutRow& row : core::bloom::kLayoutRows) layouts.emplace_back(row.name);
  for (const std::string& layout : layouts) {
    configure("bf-layout", layout);
    run({"BF.ADD", layout, "one"});
    run({"BF.MADD", layout, "two", "three"});
  }
  // Commands find filters of each layout, whatever layout the option bf-layout sets for new
  // filters.
  for (const std::string& guess : layouts) {
    configure("bf-layout", guess);
    for (const std::string& layout : layouts) {
      EXPECT_EQ(run({"BF.EXISTS", layout, "two"}), kYes) << layout;
      EXPECT_EQ(run({"BF.MEXISTS", layout, "one", "three"}), array({kYes, kYes})) << layout;
      EXPECT_EQ(run({"BF.ADD", layout, "one"}), kNo) << layout;
    }
  }
  EXPECT_EQ(info("redisbloom", "SIZE"), array({integer(240)}));
}

TEST_F(BloomCommandsTest, OnlyRealChangesPublishEvents) {
  run({"BF.ADD", "k", "a"});
  EXPECT_EQ(changes(), 1U);
  run({"BF.ADD", "k", "a"});
  run({"BF.MADD", "k", "a", "a"});
  run({"BF.EXISTS", "k", "a"});
  run({"BF.RESERVE", "k", "0.01", "5"});
  EXPECT_EQ(changes(), 1U);
  run({"BF.MADD", "k", "a", "b", "c"});
  EXPECT_EQ(changes(), 2U);
  run({"BF.RESERVE", "l", "0.01", "5"});
  EXPECT_EQ(changes(), 3U);
}

TEST_F(BloomCommandsTest, LookupsCountHitsAndMisses) {
  run({"BF.ADD", "k", "a"});
  run({"BF.EXISTS", "k", "a"});
  run({"BF.MEXISTS", "none", "a", "b"});
  EXPECT_EQ(statistics_.thread(0).keyspace_hits.value(), 1U);
  EXPECT_EQ(statistics_.thread(0).keyspace_misses.value(), 1U);
}

// With several I/O threads, an add first looks its items up under the shared lock. If it finds all
// items, it changes nothing, but still counts as a use of the key.
TEST_F(BloomCommandsTest, AnAddOfWhatIsThereIsAUse) {
  set_option(config_, OptionId::kIoThreads, "2");
  run({"BF.MADD", "k", "a", "b"});
  const std::vector<std::vector<std::string>> adds{
      {"BF.ADD", "k", "a"}, {"BF.MADD", "k", "a", "b"}, {"BF.INSERT", "k", "ITEMS", "b"}};
  for (const auto& add : adds) {
    advance_ms(7000);
    EXPECT_EQ(run({"OBJECT", "IDLETIME", "k"}), integer(7));
    run(add);
    EXPECT_EQ(run({"OBJECT", "IDLETIME", "k"}), integer(0)) << add[0];
  }
  configure("maxmemory-policy", "allkeys-lfu");
  configure("lfu-log-factor", "0");
  EXPECT_EQ(run({"OBJECT", "FREQ", "k"}), integer(5));
  for (const auto& add : adds) run(add);
  EXPECT_EQ(run({"OBJECT", "FREQ", "k"}), integer(8));
  // A BF.MADD of both present and new items counts as one use of the key.
  EXPECT_EQ(run({"BF.MADD", "k", "a", "c"}), array({kNo, kYes}));
  EXPECT_EQ(run({"OBJECT", "FREQ", "k"}), integer(9));
  run({"CLIENT", "NO-TOUCH", "ON"});
  for (const auto& add : adds) run(add);
  EXPECT_EQ(run({"OBJECT", "FREQ", "k"}), integer(9));
}

TEST_F(BloomCommandsTest, ExpireEventFollowsTheFilterEvents) {
  pubsub_.subscribe(SubscriptionKind::kPattern, "__keyspace@*", {1000, 0});
  key_events_.choose(kEventsByKey | kGenericEvents);
  const std::string later_s = std::to_string(clock_.now_ms / 1000 + 100);
  const std::string later_ms = std::to_string(clock_.now_ms + 100'000);
  const std::vector<std::vector<std::string>> expiries{
      {"EX", "100"}, {"PX", "100000"}, {"EXAT", later_s}, {"PXAT", later_ms}};
  using Names = std::vector<std::string>;
  for (const auto& expiry : expiries) {
    const std::string& word = expiry[0];
    EXPECT_EQ(run({"BF.RESERVE", "r" + word, "0.01", "100", word, expiry[1]}), kOk);
    EXPECT_EQ(events(), (Names{"bloom.reserve", "expire"})) << word;
    const std::vector<std::string> insert{"BF.INSERT", "i" + word, word, expiry[1], "ITEMS", "a"};
    EXPECT_EQ(run(insert), array({kYes}));
    EXPECT_EQ(events(), (Names{"bloom.add", "bloom.reserve", "expire"})) << word;
    // BF.INSERT applies the expiry only if it creates the filter.
    run({"BF.INSERT", "i" + word, word, expiry[1], "ITEMS", "a", "b"});
    EXPECT_EQ(events(), Names{"bloom.add"}) << word;
  }
  run({"BF.RESERVE", "r", "0.01", "100"});
  run({"BF.INSERT", "i", "ITEMS", "a"});
  EXPECT_EQ(events(), (Names{"bloom.reserve", "bloom.add", "bloom.reserve"}));
}

TEST_F(BloomCommandsTest, GrownFilterForgetsNothing) {
  run({"BF.RESERVE", "k", "0.001", "20"});
  std::vector<std::string> add{"BF.MADD", "k"};
  std::vector<std::string> look{"BF.MEXISTS", "k"};
  for (int i = 0; i < 20000; ++i) {
    add.push_back("item:" + std::to_string(i));
    look.push_back(add.back());
  }
  const std::string added = run(add);
  const auto answered_yes = [](const std::string& reply) {
    return std::count(reply.begin() + 8, reply.end(), '1');
  };
  EXPECT_EQ(run({"BF.CARD", "k"}), integer(answered_yes(added)));
  EXPECT_EQ(answered_yes(run(look)), 20000);
}

TEST_F(BloomCommandsTest, TotalsSumOverAllDatabases) {
  EXPECT_EQ(bloom_totals(keyspace_), BloomTotals{});
  run({"BF.RESERVE", "k", "0.01", "2", "EXPANSION", "3"});
  run({"BF.MADD", "k", "a", "b", "c"});
  run({"SETBIT", "s", "0", "1"});
  run({"SELECT", "3"});
  run({"BF.ADD", "k", "a"});
  const BloomTotals totals = bloom_totals(keyspace_);
  EXPECT_EQ(totals.object_count, 2U);
  EXPECT_EQ(totals.layer_count, 3U);
  EXPECT_EQ(totals.item_count, 4U);
  EXPECT_EQ(totals.capacity, 108U);
  EXPECT_GT(totals.memory_bytes, 0U);
}

TEST_F(BloomCommandsTest, CapacityOutOfRangeNamesTheRange) {
  for (const char* capacity : {"0", "-1", "9223372036854775807"}) {
    EXPECT_EQ(run({"BF.RESERVE", "k", "0.01", capacity}), error(kCapacityRange)) << capacity;
  }
  EXPECT_EQ(run({"EXISTS", "k"}), integer(0));
}

TEST_F(BloomCommandsTest, InfoOfAScalingFilter) {
  for (const auto version : {protocol::RespVersion::kResp2, protocol::RespVersion::kResp3}) {
    run({"FLUSHALL"});
    client_->session->client->resp = version;
    run({"BF.RESERVE", "k", "0.01", "100"});
    run({"BF.MADD", "k", "a", "b"});
    const std::string reply = run({"BF.INFO", "k"});
    EXPECT_TRUE(reply.starts_with(version == protocol::RespVersion::kResp2 ? "*10\r\n" : "%5\r\n"));
    EXPECT_EQ(reply.find("+Capacity\r\n:100\r\n+Size\r\n:"), reply.find('+'));
    EXPECT_TRUE(
        reply.ends_with("+Number of filters\r\n:1\r\n+Number of items inserted\r\n:2\r\n"
                        "+Expansion rate\r\n:2\r\n"))
        << reply;
  }
}

TEST_F(BloomCommandsTest, ConfigSetsWhatNewFiltersGet) {
  const auto shown = [&](const std::string& name) { return run({"CONFIG", "GET", name}); };
  EXPECT_EQ(shown("bf-error-rate"), array({bulk("bf-error-rate"), bulk("0.01")}));
  EXPECT_EQ(shown("bf-initial-size"), array({bulk("bf-initial-size"), bulk("100")}));
  EXPECT_EQ(shown("bf-expansion-factor"), array({bulk("bf-expansion-factor"), bulk("2")}));
  EXPECT_EQ(run({"CONFIG", "SET", "bf-initial-size", "500"}), kOk);
  EXPECT_EQ(run({"CONFIG", "SET", "bf-expansion-factor", "4"}), kOk);
  run({"BF.ADD", "k", "a"});
  EXPECT_EQ(info("k", "CAPACITY"), array({integer(500)}));
  EXPECT_EQ(info("k", "EXPANSION"), array({integer(4)}));
  run({"CONFIG", "SET", "bf-expansion-factor", "0"});
  run({"BF.ADD", "l", "a"});
  EXPECT_EQ(info("l", "EXPANSION"), array({kNull}));
  for (const auto& [name, bad] : {std::pair{"bf-error-rate", "1"},
                                  {"bf-error-rate", "x"},
                                  {"bf-initial-size", "0"},
                                  {"bf-expansion-factor", "32769"}}) {
    const std::string start = "-" + config_set_error(name, "");
    EXPECT_TRUE(run({"CONFIG", "SET", name, bad}).starts_with(start)) << name;
  }
}

TEST_F(BloomCommandsTest, ConfigTakesTheNamesOfValkeyBloom) {
  for (const auto& [name, value] :
       {std::pair{"bf.bloom-capacity", "700"}, {"bf.bloom-expansion", "8"}}) {
    EXPECT_EQ(run({"CONFIG", "SET", name, value}), kOk) << name;
    EXPECT_EQ(run({"CONFIG", "GET", name}), array({bulk(name), bulk(value)}));
  }
  run({"BF.ADD", "k", "a"});
  EXPECT_EQ(info("k", "CAPACITY"), array({integer(700)}));
  EXPECT_EQ(info("k", "EXPANSION"), array({integer(8)}));
  EXPECT_EQ(run({"CONFIG", "SET", "bf.bloom-fp-rate", "0.001"}), kOk);
}

TEST_F(BloomCommandsTest, RowsNameKeysAndFlags) {
  struct Expected {
    const char* name;
    int arity;
    uint32_t flag;
  };
  for (const Expected& one : {Expected{"bf.reserve", -4, kWrite},
                              {"bf.add", 3, kWrite},
                              {"bf.madd", -3, kWrite},
                              {"bf.exists", 3, kReadOnly},
                              {"bf.mexists", -3, kReadOnly},
                              {"bf.info", -2, kReadOnly},
                              {"bf.card", 2, kReadOnly}}) {
    const std::string reply = run({"COMMAND", "INFO", one.name});
    EXPECT_TRUE(reply.starts_with("*1\r\n*10\r\n" + bulk(one.name) + integer(one.arity))) << reply;
    const std::string flag = one.flag == kWrite ? "+write\r\n" : "+readonly\r\n";
    EXPECT_NE(reply.find(flag), std::string::npos) << one.name;
    EXPECT_NE(reply.find(integer(1) + integer(1) + integer(1) + "*"), std::string::npos)
        << one.name;
  }
}

TEST_F(BloomCommandsTest, ARefusedReservationNamesThePlannedBytes) {
  const std::string plan = run({"BF.PLAN", "0.01", "281474976710656"});
  const size_t at = plan.find(bulk("bytes")) + bulk("bytes").size();
  const uint64_t planned_bytes = std::stoull(plan.substr(plan.find(':', at) + 1));
  EXPECT_EQ(run({"BF.RESERVE", "f", "0.01", "281474976710656"}),
            error("ERR Insufficient memory to create filter of " +
                  std::to_string(planned_bytes - 48) + " bytes"));
  EXPECT_EQ(core::bloom::mapped_bytes(), 0U);
  EXPECT_EQ(run({"EXISTS", "f"}), integer(0));
}

}  // namespace
}  // namespace server
