// SPDX-License-Identifier: MIT
//
// Tests filters with a window: the replies to clients, and the commands in the journal.
#include <gmock/gmock.h>

#include "core/bloom/scalable_filter.h"
#include "persistence/journal.h"
#include "protocol/reply_parser.h"
#include "server/base/process/server_state.h"
#include "server/commands/bloom/bloom_chunk_commands.h"
#include "server/commands/bloom/bloom_memory.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

class BloomWindows : public CommandTest {
 protected:
  BloomWindows() { journal_.set_active(true); }

  // Returns the commands that were journalled since the last call.
  std::vector<std::vector<std::string>> journalled() {
    std::string bytes;
    journal_.take(bytes);
    std::vector<std::vector<std::string>> commands;
    size_t at = 0;
    const auto number = [&] {
      const size_t end = bytes.find("\r\n", at);
      const auto value = static_cast<size_t>(std::stoull(bytes.substr(at + 1, end - at - 1)));
      at = end + 2;
      return value;
    };
    while (at < bytes.size()) {
      std::vector<std::string> words(number());
      for (std::string& word : words) {
        const size_t size = number();
        word = bytes.substr(at, size);
        at += size + 2;
      }
      commands.push_back(std::move(words));
    }
    return commands;
  }
  static std::string joined(const std::vector<std::vector<std::string>>& commands) {
    std::string text;
    for (const auto& words : commands) {
      for (size_t i = 0; i < words.size(); ++i) text += (i > 0 ? " " : "") + words[i];
      text += ';';
    }
    return text;
  }
  std::string effect(const std::vector<std::string>& command) {
    run(command);
    return joined(journalled());
  }
  // Empties the keyspace, replays the journal, and expects the same data as before.
  void expect_journal_tells_all() {
    const auto commands = journalled();
    const std::string digest = run({"DEBUG", "DIGEST"});
    run({"FLUSHALL"});
    TestClient replay(*this);
    replay.session->origin = CommandOrigin::kOwnJournal;
    for (const auto& words : commands) {
      const std::string reply = replay.run(words);
      EXPECT_NE(reply.front(), '-') << joined({words}) << " " << reply;
    }
    EXPECT_EQ(run({"DEBUG", "DIGEST"}), digest);
    journalled();
  }
  // A reply of BF.SCANDUMP: iterator and chunk.
  struct Dumped {
    int64_t iterator = 0;
    std::string chunk;
  };
  Dumped dump(int64_t iterator) {
    const std::string bytes = run({"BF.SCANDUMP", "w", std::to_string(iterator)});
    protocol::ReplyParser parser;
    EXPECT_EQ(parser.parse(bytes), protocol::ReplyParser::Status::kReply);
    const auto& elements = parser.reply().elements;
    EXPECT_EQ(elements.size(), 2U) << bytes;
    if (elements.size() != 2) return {};
    return {elements[0].integer, elements[1].text};
  }
  std::vector<Dumped> dump_all() {
    std::vector<Dumped> all{dump(0)};
    while (all.back().iterator != 0) all.push_back(dump(all.back().iterator));
    all.pop_back();
    return all;
  }
  std::string load(const std::string& key, const Dumped& dumped) {
    return run({"BF.LOADCHUNK", key, std::to_string(dumped.iterator), dumped.chunk});
  }
  // Makes a window with the items `a` and `b` in two generations.
  void make_two_generations() {
    ASSERT_EQ(run({"BF.RESERVE", "w", "0.001", "400", "WINDOW", "10", "GENERATIONS", "2"}), kOk);
    run({"BF.ADD", "w", "a"});
    advance_ms(5000);
    run({"BF.ADD", "w", "b"});
  }
  std::string at(int64_t after_ms) const { return std::to_string(begin_ms_ + after_ms); }
  bool has(const std::string& item) { return run({"BF.EXISTS", "w", item}) == integer(1); }

  const int64_t begin_ms_ = clock_.now_ms;
};

TEST_F(BloomWindows, AnItemIsRememberedForItsWindow) {
  ASSERT_EQ(run({"BF.RESERVE", "w", "0.001", "400", "WINDOW", "10"}), kOk);
  advance_ms(1000);
  EXPECT_EQ(run({"BF.ADD", "w", "a"}), integer(1));
  EXPECT_EQ(run({"BF.ADD", "w", "a"}), integer(0));
  advance_ms(10'000);
  EXPECT_TRUE(has("a"));
  EXPECT_EQ(run({"BF.ADD", "w", "a"}), integer(0));
  advance_ms(1500);
  EXPECT_FALSE(has("a"));
  EXPECT_EQ(run({"BF.MEXISTS", "w", "a", "b"}), array({integer(0), integer(0)}));
  EXPECT_EQ(run({"BF.MADD", "w", "a", "a"}), array({integer(1), integer(0)}));
  EXPECT_TRUE(has("a"));
}

// Inside EXEC, the time of expiries is the start of EXEC, but a window must not begin before its
// filter exists.
TEST_F(BloomWindows, NewWindowBeginsLateInExec) {
  run({"MULTI"});
  run({"BF.INSERT", "w", "WINDOW", "1", "GENERATIONS", "1", "ITEMS", "x"});
  run({"BF.EXISTS", "w", "x"});
  const std::vector<std::string_view> exec{"EXEC"};
  const int64_t exec_ms = clock_.now_ms;
  advance_ms(2200);  // the time that the commands before BF.INSERT take
  protocol::OutputBuffer replies;
  client_->dispatcher.execute(exec, exec_ms, replies);
  EXPECT_EQ(replies.view(), array({array({integer(1)}), integer(1)}));
  EXPECT_THAT(joined(journalled()), ::testing::HasSubstr("START " + at(2200)));
  EXPECT_TRUE(has("x"));
}

TEST_F(BloomWindows, RefreshRenewsWhatIsAddedAgain) {
  run({"BF.RESERVE", "w", "0.001", "400", "WINDOW", "10", "REFRESH"});
  run({"BF.ADD", "w", "a"});
  for (int i = 0; i < 5; ++i) {
    advance_ms(9000);
    EXPECT_EQ(run({"BF.ADD", "w", "a"}), integer(0)) << i;
  }
  EXPECT_TRUE(has("a"));
  expect_journal_tells_all();
  EXPECT_TRUE(has("a"));
}

TEST_F(BloomWindows, OfItemsForgetsByCount) {
  ASSERT_EQ(run({"BF.RESERVE", "w", "0.0001", "8", "WINDOW", "8", "ITEMS", "GENERATIONS", "2"}),
            kOk);
  for (int i = 0; i < 100; ++i) {
    const std::string number = std::to_string(i);
    EXPECT_EQ(run({"BF.ADD", "w", number}), integer(1)) << i;
    EXPECT_EQ(has(std::to_string(i - 7)), i >= 7) << i;
    EXPECT_FALSE(has(std::to_string(i - 12))) << i;
  }
  expect_journal_tells_all();
}

TEST_F(BloomWindows, InsertMakesThemToo) {
  EXPECT_EQ(run({"BF.INSERT", "w", "CAPACITY", "400", "WINDOW", "10", "ITEMS", "a", "b"}),
            array({integer(1), integer(1)}));
  EXPECT_EQ(joined(journalled()),
            "SELECT 0;BF.INSERT w ERROR 0.01 CAPACITY 400 EXPANSION 2 LAYOUT native-2 WINDOW 10 "
            "GENERATIONS 4 START " +
                at(0) + " ITEMS a b;");
  EXPECT_EQ(effect({"BF.INSERT", "n", "WINDOW", "50", "ITEMS", "REFRESH", "ITEMS", "a"}),
            "BF.INSERT n ERROR 0.01 CAPACITY 100 EXPANSION 2 LAYOUT native-2 WINDOW 50 ITEMS "
            "GENERATIONS 4 REFRESH ITEMS a;");
}

TEST_F(BloomWindows, TheJournalHoldsTurnsBeforeTheAddsBehindThem) {
  EXPECT_EQ(effect({"BF.RESERVE", "w", "0.001", "400", "WINDOW", "10", "NONSCALING"}),
            "SELECT 0;BF.RESERVE w 0.001 400 NONSCALING LAYOUT native-2 WINDOW 10 GENERATIONS 4 "
            "START " +
                at(0) + ";");
  advance_ms(6000);
  EXPECT_EQ(effect({"BF.ADD", "w", "a"}), "BF.TURN w 2 " + at(5000) + ";BF.ADD w a;");
  EXPECT_EQ(effect({"BF.ADD", "w", "a"}), "");
  advance_ms(1500);
  EXPECT_EQ(effect({"BF.ADD", "w", "c"}), "BF.TURN w 3 " + at(7500) + ";BF.ADD w c;");
  advance_ms(-7000);
  EXPECT_EQ(effect({"BF.ADD", "w", "b"}), "BF.TURN w 3 " + at(500) + ";BF.ADD w b;");
}

TEST_F(BloomWindows, TheJournalMakesTheSameFiltersAgain) {
  run({"BF.RESERVE", "w", "0.01", "64", "WINDOW", "10"});
  run({"BF.RESERVE", "r", "0.01", "16", "WINDOW", "5", "REFRESH", "GENERATIONS", "3"});
  run({"BF.RESERVE", "i", "0.01", "64", "WINDOW", "50", "ITEMS"});
  for (int i = 0; i < 400; ++i) {
    advance_ms(i % 7 == 0 ? 900 : 30);
    if (i % 100 == 99) advance_ms(-5000);
    const std::string one = std::to_string(i % 150);
    const std::string two = std::to_string(i * 31 % 90);
    for (const char* key : {"w", "r", "i"}) run({"BF.MADD", key, one, two, one + "x"});
  }
  run({"MULTI"});
  advance_ms(4000);
  run({"BF.ADD", "w", "in exec"});
  run({"BF.ADD", "i", "in exec"});
  run({"EXEC"});
  expect_journal_tells_all();
}

TEST_F(BloomWindows, RepeatedItemsDoNotRotateUnjournalled) {
  const std::vector<std::vector<std::string>> repeats{
      {"BF.ADD", "w", "2"},
      {"BF.MADD", "w", "2", "1"},
      {"BF.INSERT", "w", "ITEMS", "1", "2"},
      {"BF.KADD", "2", "w", "w", "2"},
  };
  for (const auto& repeat : repeats) {
    for (const bool refreshes : {false, true}) {
      SCOPED_TRACE(joined({repeat}) + (refreshes ? "REFRESH" : ""));
      run({"FLUSHALL"});
      journalled();
      std::vector<std::string> reserve{"BF.RESERVE", "w",     "0.001",       "100", "WINDOW",
                                       "4",          "ITEMS", "GENERATIONS", "2"};
      if (refreshes) reserve.emplace_back("REFRESH");
      ASSERT_EQ(run(reserve), kOk);
      ASSERT_EQ(run({"BF.MADD", "w", "1", "2"}), "*2\r\n:1\r\n:1\r\n");
      const std::string digest = run({"DEBUG", "DIGEST"});
      run(repeat);
      EXPECT_EQ(run({"DEBUG", "DIGEST"}), digest);
      ASSERT_EQ(run({"BF.ADD", "w", "3"}), integer(1));
      EXPECT_EQ(run({"BF.CARD", "w"}), integer(3));
      expect_journal_tells_all();
    }
  }
}

TEST_F(BloomWindows, ARotationNeedsMemory) {
  ASSERT_EQ(run({"BF.RESERVE", "w", "0.01", "1000000", "WINDOW", "10"}), kOk);
  run({"BF.ADD", "w", "a"});
  journalled();
  advance_ms(2500);
  memory_.set_limit(memory_.refresh() + 100'000);
  EXPECT_EQ(effect({"BF.ADD", "w", "b"}), "");
  EXPECT_EQ(run({"BF.ADD", "w", "b"}), error(kOutOfMemory));
  EXPECT_EQ(run({"BF.MADD", "w", "b"}), error(kOutOfMemory));
  EXPECT_TRUE(has("a"));
  memory_.set_limit(0);
  EXPECT_EQ(effect({"BF.ADD", "w", "b"}), "BF.TURN w 1 " + at(2500) + ";BF.ADD w b;");
}

TEST_F(BloomWindows, OfItemsRefusesWhatNeedsMemory) {
  ASSERT_EQ(run({"BF.RESERVE", "w", "0.01", "1000000", "WINDOW", "4", "ITEMS", "GENERATIONS", "2"}),
            kOk);
  run({"BF.ADD", "w", "a"});
  journalled();
  memory_.set_limit(memory_.refresh() + 500'000);
  EXPECT_EQ(run({"BF.MADD", "w", "b", "c", "a"}),
            array({integer(1), error(kCannotInsert), integer(0)}));
  EXPECT_EQ(joined(journalled()), "BF.ADD w b;");
  memory_.set_limit(0);
  EXPECT_EQ(run({"BF.ADD", "w", "c"}), integer(1));
}

// Such a window would reject new items forever.
TEST_F(BloomWindows, OfItemsHaveRoomForThemOrGrow) {
  const auto reserve = [&](const char* capacity) {
    return run({"BF.RESERVE", "w", "0.01", capacity, "NONSCALING", "WINDOW", "1000", "ITEMS"});
  };
  EXPECT_THAT(reserve("996"), is_error("ERR", "capacity"));
  ASSERT_EQ(reserve("1000"), kOk);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_NE(run({"BF.ADD", "w", std::to_string(i)}).front(), '-') << i;
  }
  EXPECT_FALSE(has("0"));
  // The options do not matter if the filter exists.
  EXPECT_EQ(run({"BF.INSERT", "w", "CAPACITY", "10", "NONSCALING", "WINDOW", "1000", "ITEMS",
                 "ITEMS", "4999"}),
            array({integer(0)}));
  EXPECT_EQ(run({"BF.RESERVE", "s", "0.01", "1", "WINDOW", "1000", "ITEMS"}), kOk);
  EXPECT_EQ(run({"BF.RESERVE", "t", "0.01", "1", "NONSCALING", "WINDOW", "1000"}), kOk);
}

// Either the window is refused when it is made, or it accepts items forever.
TEST_F(BloomWindows, OfItemsThatGrowKeepTheLimits) {
  int refused = 0;
  int made = 0;
  const auto expect_room_or_refusal = [&](const char* option, int limit, std::string_view refusal) {
    ASSERT_EQ(run({"CONFIG", "SET", option, std::to_string(limit)}), kOk);
    run({"DEL", "w"});
    const std::string reply = run({"BF.RESERVE", "w", "0.01", "20", "WINDOW", "1000", "ITEMS"});
    if (reply != kOk) {
      EXPECT_EQ(reply, error(refusal)) << limit;
      ++refused;
      return;
    }
    ++made;
    for (int i = 0; i < 4000; ++i) {
      ASSERT_NE(run({"BF.ADD", "w", std::to_string(i)}).front(), '-') << option << limit << i;
    }
  };
  for (int bytes = 1000; bytes < 16000; bytes += 1000) {
    expect_room_or_refusal("bf.bloom-memory-usage-limit", bytes, kFilterTooLarge);
  }
  ASSERT_EQ(run({"CONFIG", "SET", "bf.bloom-memory-usage-limit", "0"}), kOk);
  for (int layers = 5; layers < 50; layers += 3) {
    expect_room_or_refusal("bf.bloom_max_filters", layers, kWindowNeedsCapacity);
  }
  EXPECT_GT(refused, 5);
  EXPECT_GT(made, 5);
  EXPECT_EQ(run({"BF.RESERVE", "v", "0.01", "1", "EXPANSION", "1", "WINDOW", "100000", "ITEMS"}),
            error(kWindowNeedsCapacity));
}

TEST_F(BloomWindows, OfItemsMayTakeTheWholeLimit) {
  const auto reserve = [&] {
    return run({"BF.RESERVE", "w", "0.01", "64", "WINDOW", "640", "ITEMS", "GENERATIONS", "64"});
  };
  ASSERT_EQ(reserve(), kOk);
  int64_t most = 0;
  for (int i = 0; i < 3000; ++i) {
    ASSERT_NE(run({"BF.ADD", "w", std::to_string(i)}).front(), '-') << i;
    const std::string size = run({"BF.INFO", "w", "SIZE"});
    most = std::max<int64_t>(most, std::stoll(size.substr(size.find(':') + 1)));
  }
  const auto reserve_within = [&](int64_t bytes) {
    run({"DEL", "w"});
    run({"CONFIG", "SET", "bf.bloom-memory-usage-limit", std::to_string(bytes)});
    return reserve();
  };
  EXPECT_EQ(reserve_within(most), kOk);
  EXPECT_EQ(reserve_within(most - 1), error(kFilterTooLarge));
}

// The limits of one filter are for growth: the window's size was checked when it was made.
TEST_F(BloomWindows, RotateBeyondTheLimitOnLayers) {
  ASSERT_EQ(run({"BF.RESERVE", "w", "0.01", "100", "WINDOW", "4", "ITEMS", "GENERATIONS", "2"}),
            kOk);
  ASSERT_EQ(run({"CONFIG", "SET", "bf.bloom_max_filters", "1"}), kOk);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run({"BF.ADD", "w", std::to_string(i)}), integer(1)) << i;
}

TEST_F(BloomWindows, ADumpEndsWithAnErrorAtARotation) {
  constexpr int64_t kLargestDouble = int64_t{1} << 53;
  make_two_generations();
  const Dumped header = dump(0);
  const Dumped first = dump(header.iterator);
  EXPECT_LT(first.iterator, kLargestDouble);
  advance_ms(10'000);
  run({"BF.ADD", "w", "c"});
  for (const int64_t iterator : {header.iterator, first.iterator, int64_t{1}}) {
    EXPECT_EQ(run({"BF.SCANDUMP", "w", std::to_string(iterator)}), error(kDumpRotated)) << iterator;
  }
  const auto all = dump_all();
  EXPECT_EQ(all.size(), 3U);
  for (const Dumped& each : all) EXPECT_EQ(load("copy", each), kOk);
  EXPECT_EQ(run({"DEBUG", "DIGEST-VALUE", "copy"}), run({"DEBUG", "DIGEST-VALUE", "w"}));
}

TEST_F(BloomWindows, ACopyThatRotatedTakesNoChunks) {
  make_two_generations();
  const auto all = dump_all();
  ASSERT_EQ(all.size(), 3U);
  ASSERT_EQ(load("copy", all[0]), kOk);
  ASSERT_EQ(load("copy", all[1]), kOk);
  advance_ms(10'000);
  run({"BF.ADD", "copy", "c"});
  EXPECT_EQ(load("copy", all[1]), error(kCopyRotated));
  EXPECT_EQ(load("copy", all[2]), error(kCopyRotated));
  // Another filter's header has its own ordinal.
  EXPECT_EQ(load("other", {all[0].iterator + (int64_t{1} << 40), all[0].chunk}), error(kBadData));
  EXPECT_EQ(run({"EXISTS", "other"}), integer(0));
}

// Earlier releases wrote such iterators for clients too. They cannot show whether a window rotated.
TEST_F(BloomWindows, IteratorsWithoutAMarkAreForJournals) {
  make_two_generations();
  const auto all = dump_all();
  ASSERT_EQ(all.size(), 3U);
  journalled();
  EXPECT_EQ(load("copy", {1, all[0].chunk}), kOk);
  const auto end = static_cast<int64_t>(1 + all[1].chunk.size());
  EXPECT_EQ(load("copy", {end, all[1].chunk}), error(kCopyRotated));
  EXPECT_EQ(load("copy", all[1]), kOk);
  const auto commands = journalled();
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_EQ(commands[0][2], "1");
  EXPECT_EQ(commands[1][2], std::to_string(end));
}

TEST_F(BloomWindows, TheJournalRepeatsALoadAndItsRotation) {
  make_two_generations();
  auto all = dump_all();
  ASSERT_EQ(all.size(), 3U);
  for (const Dumped& each : all) EXPECT_EQ(load("copy", each), kOk);
  advance_ms(10'000);
  run({"BF.ADD", "copy", "c"});
  run({"BF.ADD", "w", "c"});
  // A later dump replaces the bits of all generations.
  all = dump_all();
  for (size_t i = 1; i < all.size(); ++i) EXPECT_EQ(load("copy", all[i]), kOk);
  EXPECT_EQ(run({"DEBUG", "DIGEST-VALUE", "copy"}), run({"DEBUG", "DIGEST-VALUE", "w"}));
  expect_journal_tells_all();
}

TEST_F(BloomWindows, AReplicaDoesNotGoByItsClock) {
  run({"BF.RESERVE", "w", "0.001", "400", "WINDOW", "10"});
  run({"BF.ADD", "w", "a"});
  state_.is_replica = true;
  advance_ms(100'000);
  EXPECT_TRUE(has("a"));
  state_.is_replica = false;
  EXPECT_FALSE(has("a"));
}

TEST_F(BloomWindows, TurnsAreForJournals) {
  run({"BF.RESERVE", "w", "0.001", "400", "WINDOW", "10"});
  run({"BF.RESERVE", "plain", "0.001", "400"});
  EXPECT_THAT(run({"BF.TURN", "w", "1", at(2500)}), is_error("ERR", "journals"));
  TestClient replay(*this);
  replay.session->origin = CommandOrigin::kOwnJournal;
  EXPECT_EQ(replay.run({"BF.TURN", "w", "x", "1"}), error(kNotAnInteger));
  EXPECT_THAT(replay.run({"BF.TURN", "w", "1", "-1"}), is_error("ERR", "turn"));
  EXPECT_THAT(replay.run({"BF.TURN", "plain", "1", "1"}), is_error("ERR", "no filter"));
  EXPECT_THAT(replay.run({"BF.TURN", "none", "1", "1"}), is_error("ERR", "no filter"));
  EXPECT_EQ(replay.run({"BF.TURN", "w", "1", at(2500)}), kOk);
}

TEST_F(BloomWindows, RefusalsNameTheReason) {
  EXPECT_THAT(run({"BF.RESERVE", "w", "0.01", "100", "WINDOW", "10", "LAYOUT", "redisbloom"}),
              is_error("ERR", "layout"));
  EXPECT_THAT(run({"BF.RESERVE", "w", "0.01", "100", "WINDOW", "10", "VALIDATESCALETO", "200"}),
              is_error("ERR", "VALIDATESCALETO"));
  EXPECT_EQ(run({"BF.RESERVE", "w", "0.01", "100", "WINDOW", "10", "START", "5"}),
            error("Unknown argument received: 'START'"));
  EXPECT_EQ(run({"EXISTS", "w"}), integer(0));
  run({"CONFIG", "SET", "bf-layout", "redisbloom"});
  EXPECT_EQ(run({"BF.RESERVE", "w", "0.01", "100", "WINDOW", "10"}), kOk);
}

TEST_F(BloomWindows, StatsTellOfGenerationsAndOfWhatIsTooMuch) {
  run({"BF.RESERVE", "w", "0.01", "8", "WINDOW", "10", "REFRESH"});
  for (int i = 0; i < 5; ++i) run({"BF.ADD", "w", std::to_string(i)});
  advance_ms(2500);
  run({"BF.ADD", "w", "next"});
  run({"HELLO", "3"});
  const std::string stats = run({"BF.STATS", "w"});
  const std::string window =
      bulk("window") + "%5\r\n" + bulk("seconds") + ",10\r\n" + bulk("generations") + ":4\r\n" +
      bulk("refresh") + "#t\r\n" + bulk("items over capacity") + ":3\r\n" + bulk("alive") +
      "*2\r\n%3\r\n" + bulk("start") + integer(begin_ms_) + bulk("items") + ":5\r\n" +
      bulk("layers") + ":2\r\n%3\r\n" + bulk("start") + integer(begin_ms_ + 2500) + bulk("items") +
      ":1\r\n" + bulk("layers") + ":1\r\n";
  EXPECT_TRUE(stats.ends_with(window)) << stats;
  EXPECT_TRUE(stats.starts_with("%18\r\n"));
}

TEST_F(BloomWindows, PlanTellsOfAllGenerations) {
  const std::vector<std::string> words{"0.01", "1000000", "WINDOW", "10", "GENERATIONS", "4"};
  run({"HELLO", "3"});
  const std::string plan = run({"BF.PLAN", "0.01", "1000000", "WINDOW", "10"});
  EXPECT_TRUE(plan.starts_with("%11\r\n")) << plan;
  EXPECT_NE(plan.find(bulk("generations") + ":5\r\n"), std::string::npos) << plan;
  const std::string bytes = plan.substr(plan.find("bytes") + 7);
  // BF.PLAN counts the memory of all generations of the filter.
  run({"BF.RESERVE", "w", "0.01", "1000000", "WINDOW", "10"});
  for (int i = 0; i < 5; ++i) {
    run({"BF.ADD", "w", std::to_string(i)});
    advance_ms(2500);
  }
  const std::string size = run({"BF.INFO", "w", "SIZE"});
  const std::string figure = size.substr(size.rfind(':'));
  EXPECT_EQ(bytes.substr(0, figure.size()), figure);
}

TEST_F(BloomWindows, TheMemoryLimitIsForAllGenerations) {
  run({"CONFIG", "SET", "bf.bloom-memory-usage-limit", "1000000"});
  EXPECT_EQ(run({"BF.RESERVE", "plain", "0.01", "600000"}), kOk);
  EXPECT_EQ(run({"BF.RESERVE", "w", "0.01", "600000", "WINDOW", "10"}), error(kFilterTooLarge));
}

TEST_F(BloomWindows, WithoutMemoryToGrowNothingChanges) {
  ASSERT_EQ(run({"BF.RESERVE", "w", "0.01", "400", "WINDOW", "10"}), kOk);
  const std::string size = run({"BF.INFO", "w", "SIZE"});
  const uint64_t bytes = std::stoull(size.substr(size.rfind(':') + 1));
  run({"CONFIG", "SET", "bf.bloom-memory-usage-limit", std::to_string(bytes + 1)});
  std::string reply;
  int count = 0;
  for (; (reply = run({"BF.ADD", "w", std::to_string(count)})) != integer(0); ++count) {
    if (reply.front() == '-') break;
  }
  EXPECT_EQ(reply, error(kFilterTooLarge));
  EXPECT_GE(count, 90);
  const std::string before = run({"DUMP", "w"});
  EXPECT_EQ(run({"BF.ADD", "w", "one more"}), reply);
  EXPECT_EQ(run({"DUMP", "w"}), before);
  EXPECT_TRUE(has("0"));
  // The memory limit of one filter applies only to adds by clients. The filter still rotates when a
  // generation's time ends.
  advance_ms(13'000);
  EXPECT_FALSE(has("0"));
  EXPECT_EQ(run({"BF.ADD", "w", "one more"}), integer(1));
}

}  // namespace
}  // namespace server
