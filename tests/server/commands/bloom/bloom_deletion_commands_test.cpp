// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "persistence/journal.h"
#include "protocol/error_texts.h"
#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/commands/bloom/bloom_items.h"
#include "server/commands/bloom/bloom_memory.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

// Commands that reserve a filter of each deletable layout.
const std::vector<std::vector<std::string>> kKinds = {
    {"DELETABLE"}, {"DELETABLE", "REGIONS", "4"}, {"LAYOUT", "regions", "REGIONS", "1"}};

class BloomDeletionCommandsTest : public CommandTest {
 protected:
  std::string reserve(const std::string& key, const std::string& rate, const std::string& capacity,
                      const std::vector<std::string>& options) {
    std::vector<std::string> command{"BF.RESERVE", key, rate, capacity};
    command.insert(command.end(), options.begin(), options.end());
    return run(command);
  }
  static std::vector<std::string> with_items(std::vector<std::string> command,
                                             const std::vector<std::string>& items) {
    command.insert(command.end(), items.begin(), items.end());
    return command;
  }
  static std::string item(uint64_t number) { return "item:" + std::to_string(number); }
  // Returns the integers in an array reply.
  static std::vector<int> numbers(const std::string& reply) {
    std::vector<int> found;
    size_t at = reply.find("\r\n") + 2;
    while (at < reply.size()) {
      found.push_back(std::stoi(reply.substr(at + 1)));
      at = reply.find("\r\n", at) + 2;
    }
    return found;
  }
  std::string digest(const std::string& key) { return run({"DUMP", key}); }
  // Replays in database 1 the commands that database 0 has journalled since the last call.
  void replay() {
    std::string bytes;
    journal_.take(bytes);
    size_t at = 0;
    const auto number = [&] {
      const size_t end = bytes.find("\r\n", at);
      const int value = std::stoi(bytes.substr(at + 1, end - at - 1));
      at = end + 2;
      return value;
    };
    other_->session->origin = CommandOrigin::kOwnJournal;
    other_->session->client->database = 1;
    while (at < bytes.size()) {
      std::vector<std::string> command(static_cast<size_t>(number()));
      for (std::string& word : command) {
        const auto size = static_cast<size_t>(number());
        word = bytes.substr(at, size);
        at += size + 2;
      }
      if (command[0] != "SELECT") run_as_other(command);
    }
    bytes.clear();
    journal_.take(bytes);
  }
  // Copies the filter `from` to the key `to`, by BF.SCANDUMP and BF.LOADCHUNK.
  void copy_by_chunks(const std::string& from, const std::string& to) {
    for (std::string iterator = "0";;) {
      const std::string reply = run({"BF.SCANDUMP", from, iterator});
      const size_t first_end = reply.find("\r\n", 4);
      iterator = reply.substr(5, first_end - 5);
      const size_t data_at = reply.find("\r\n", first_end + 2) + 2;
      const std::string data = reply.substr(data_at, reply.size() - data_at - 2);
      if (iterator == "0") return;
      ASSERT_EQ(run({"BF.LOADCHUNK", to, iterator, data}), kOk);
    }
  }
};

TEST_F(BloomDeletionCommandsTest, AnswersEachItem) {
  for (const auto& options : kKinds) {
    run({"DEL", "f"});
    ASSERT_EQ(reserve("f", "0.001", "100", options), kOk);
    run({"BF.MADD", "f", "a", "b", "c"});
    EXPECT_EQ(run({"BF.DEL", "f", "a"}), array({integer(1)}));
    EXPECT_EQ(run({"BF.EXISTS", "f", "a"}), integer(0));
    EXPECT_EQ(run({"BF.DEL", "f", "a", "b", "x", "b"}),
              array({integer(0), integer(1), integer(0), integer(0)}));
    EXPECT_EQ(run({"BF.MEXISTS", "f", "a", "b", "c"}), array({integer(0), integer(0), integer(1)}));
    EXPECT_EQ(run({"BF.CARD", "f"}), integer(1));
    EXPECT_EQ(run({"BF.ADD", "f", "a"}), integer(1));
  }
}

TEST_F(BloomDeletionCommandsTest, SeparatesMissingKeysFromOtherTypes) {
  run({"SET", "s", "x"});
  run({"BF.RESERVE", "plain", "0.01", "100"});
  EXPECT_EQ(run({"BF.DEL", "missing", "a", "b"}), array({integer(0), integer(0)}));
  EXPECT_EQ(run({"EXISTS", "missing"}), integer(0));
  EXPECT_EQ(run({"BF.DEL", "s", "a"}), error(kWrongType));
  EXPECT_THAT(run({"BF.DEL", "plain", "a"}), is_error("ERR", "not reserved DELETABLE"));
  EXPECT_EQ(run({"BF.DEL", "plain"}), error(protocol::wrong_arity("bf.del")));
  const uint64_t changes = state_.changes.load();
  run({"BF.DEL", "missing", "a"});
  EXPECT_EQ(state_.changes.load(), changes);
}

TEST_F(BloomDeletionCommandsTest, OptionsThatMakeNoSenseAreRefused) {
  const auto regions = is_error("ERR", "[1, 255]");
  const auto needs = is_error("ERR", "REGIONS needs DELETABLE or LAYOUT regions");
  const auto layout = is_error("ERR", "DELETABLE needs the layout");
  EXPECT_THAT(reserve("f", "0.01", "9", {"DELETABLE", "REGIONS", "0"}), regions);
  EXPECT_THAT(reserve("f", "0.01", "9", {"DELETABLE", "REGIONS", "256"}), regions);
  EXPECT_THAT(reserve("f", "0.01", "9", {"DELETABLE", "REGIONS", "x"}), regions);
  EXPECT_THAT(reserve("f", "0.01", "9", {"REGIONS", "4"}), needs);
  EXPECT_THAT(reserve("f", "0.01", "9", {"DELETABLE", "LAYOUT", "fingerprints", "REGIONS", "4"}),
              needs);
  EXPECT_THAT(reserve("f", "0.01", "9", {"LAYOUT", "native", "DELETABLE"}), layout);
  EXPECT_THAT(reserve("f", "0.01", "9", {"DELETABLE", "SEED", std::string(32, 'x')}),
              is_error("ERR", "SEED"));
  EXPECT_THAT(reserve("f", "0.01", "9", {"DELETABLE", "WINDOW", "10"}), is_error("ERR", "WINDOW"));
  EXPECT_THAT(run({"BF.INSERT", "f", "REGIONS", "4", "ITEMS", "a"}), needs);
  EXPECT_THAT(run({"BF.PLAN", "0.01", "9", "REGIONS", "4"}), needs);
  EXPECT_EQ(run({"EXISTS", "f"}), integer(0));
}

TEST_F(BloomDeletionCommandsTest, ConfiguredLayoutMakesDeletableFilters) {
  for (const std::string layout : {"fingerprints", "regions"}) {
    const std::vector<NamedValue> pairs{{"bf-layout", layout}};
    ASSERT_TRUE(config_.set(pairs));
    run({"DEL", "f"});
    EXPECT_EQ(run({"BF.ADD", "f", "a"}), integer(1));
    EXPECT_NE(run({"BF.STATS", "f"}).find(layout), std::string::npos);
    EXPECT_EQ(run({"BF.DEL", "f", "a"}), array({integer(1)}));
  }
}

// A full filter that cannot grow rejects items. A filter that can grow accepts all items. A
// rejected add changes nothing.
TEST_F(BloomDeletionCommandsTest, FullFiltersStayAsTheyWere) {
  for (auto options : kKinds) {
    options.emplace_back("NONSCALING");
    run({"DEL", "f"});
    ASSERT_EQ(reserve("f", "0.001", "50", options), kOk);
    uint64_t number = 0;
    while (run({"BF.ADD", "f", item(number)}) == integer(1)) ++number;
    EXPECT_GE(number, 40U);
    const std::string before = digest("f");
    EXPECT_EQ(run({"BF.ADD", "f", "one more"}), error(kFilterFull));
    EXPECT_EQ(digest("f"), before);
    EXPECT_EQ(run({"BF.DEL", "f", item(0)}), array({integer(1)}));
    EXPECT_EQ(run({"BF.ADD", "f", "one more"}), integer(1));
    for (uint64_t i = 1; i < number; ++i) {
      ASSERT_EQ(run({"BF.EXISTS", "f", item(i)}), integer(1)) << i;
    }
  }
}

// A filter that cannot grow for lack of memory rejects new items. It accepts them after other items
// were deleted.
TEST_F(BloomDeletionCommandsTest, WithoutMemoryToGrowNothingChanges) {
  const std::string limit = error(kFilterTooLarge);
  for (const auto& options : kKinds) {
    run({"DEL", "f"});
    ASSERT_EQ(run({"CONFIG", "SET", "bf.bloom-memory-usage-limit", "0"}), kOk);
    ASSERT_EQ(reserve("f", "0.001", "50", options), kOk);
    const std::string size = run({"BF.INFO", "f", "SIZE"});
    const size_t digits_at = size.rfind(':') + 1;
    const uint64_t bytes = std::stoull(size.substr(digits_at));
    run({"CONFIG", "SET", "bf.bloom-memory-usage-limit", std::to_string(bytes + 1)});
    uint64_t number = 0;
    std::string reply;
    while ((reply = run({"BF.ADD", "f", item(number)})) == integer(1)) ++number;
    EXPECT_EQ(reply, limit);
    EXPECT_GE(number, 40U);
    const std::string before = digest("f");
    EXPECT_EQ(run({"BF.MADD", "f", "one more", item(0)}), array({limit, integer(0)}));
    EXPECT_EQ(digest("f"), before);
    EXPECT_EQ(run({"BF.INFO", "f", "FILTERS"}), array({integer(1)}));
    EXPECT_EQ(run({"BF.DEL", "f", item(0)}), array({integer(1)}));
    EXPECT_EQ(run({"BF.ADD", "f", "one more"}), integer(1));
  }
}

TEST_F(BloomDeletionCommandsTest, FiguresFollowTheLayers) {
  const auto field = [&](const std::string& name) {
    const std::string reply = run({"BF.INFO", "f", name});
    return std::stoll(reply.substr(reply.rfind(':') + 1));
  };
  const auto usage = [&] { return std::stoll(run({"MEMORY", "USAGE", "f"}).substr(1)); };
  for (const auto& options : kKinds) {
    run({"DEL", "f"});
    ASSERT_EQ(reserve("f", "0.001", "1000", options), kOk);
    const auto small_size = field("SIZE");
    const auto small_usage = usage();
    EXPECT_GE(small_usage, small_size);
    EXPECT_EQ(field("CAPACITY"), 1000);
    std::vector<std::string> added;
    for (uint64_t i = 0; field("FILTERS") == 1; ++i) {
      if (run({"BF.ADD", "f", item(i)}) == integer(1)) added.push_back(item(i));
    }
    EXPECT_EQ(field("ITEMS"), static_cast<int64_t>(added.size()));
    EXPECT_EQ(field("EXPANSION"), 2);
    const auto grown_size = field("SIZE");
    EXPECT_GE(grown_size, 2 * small_size);
    EXPECT_GE(usage() - small_usage, (grown_size - small_size) * 9 / 10);
    // The last item created the second layer, which contains only this item. Deleting all earlier
    // items removes the first layer.
    added.pop_back();
    std::vector<std::string> command{"BF.DEL", "f"};
    command.insert(command.end(), added.begin(), added.end());
    const std::vector<int> answers = numbers(run(command));
    // BF.DEL cannot delete an item if all its bits also belong to other items. If this happens, the
    // expectations below do not hold, so the round is skipped.
    if (std::ranges::count(answers, 1) != std::ssize(answers)) continue;
    EXPECT_EQ(field("FILTERS"), 1);
    EXPECT_EQ(field("ITEMS"), 1);
    EXPECT_GT(field("CAPACITY"), 1000);
    EXPECT_LT(field("SIZE"), grown_size);
    EXPECT_LT(usage(), grown_size);
  }
}

// Compares commands with several items to a simple model, while the filter gains layers and loses
// old ones. Now and then the filter is converted to each of its file formats.
TEST_F(BloomDeletionCommandsTest, NoItemIsLostThatWasAddedAndNotDeleted) {
  constexpr uint64_t kSeed = 20261122;
  for (const auto& options : kKinds) {
    std::mt19937_64 random(kSeed);
    journal_.set_active(true);
    run({"DEL", "f"});
    ASSERT_EQ(reserve("f", "0.001", "20", options), kOk);
    std::set<uint64_t> mine;
    int stayed = 0;
    for (int round = 0; round < 400; ++round) {
      std::set<uint64_t> picked;
      while (picked.size() < 10) picked.insert(random() % 600);
      const bool adds = random() % 5 < (round / 100 % 2 == 0 ? 4U : 1U);
      std::vector<std::string> items;
      std::vector<uint64_t> order;
      for (const uint64_t number : picked) {
        // Only items that were added may be deleted.
        if (!adds && !mine.contains(number)) continue;
        order.push_back(number);
        items.push_back(item(number));
      }
      if (order.empty()) continue;
      const auto answers = numbers(run(with_items({adds ? "BF.MADD" : "BF.DEL", "f"}, items)));
      ASSERT_EQ(answers.size(), order.size());
      for (size_t i = 0; i < order.size(); ++i) {
        if (adds && answers[i] == 1) mine.insert(order[i]);
        if (adds) continue;
        ASSERT_NE(answers[i], 0) << order[i] << " seed " << kSeed;
        stayed += answers[i] == -1;
        mine.erase(order[i]);
      }
      if (round % 20 == 0) {
        for (const uint64_t number : mine) {
          ASSERT_EQ(run({"BF.EXISTS", "f", item(number)}), integer(1)) << number;
        }
      }
      if (round % 50 == 49) {
        replay();
        EXPECT_EQ(digest("f"), run_as_other({"DUMP", "f"}));
        ASSERT_EQ(run({"COPY", "f", "g"}), integer(1));
        EXPECT_EQ(digest("g"), digest("f"));
        copy_by_chunks("f", "h");
        EXPECT_EQ(digest("h"), digest("f"));
        run({"DEL", "h"});
        run({"RENAME", "g", "f"});
      }
    }
    EXPECT_LT(stayed, 100);
  }
}

TEST_F(BloomDeletionCommandsTest, OnlyWhatIsGoneIsJournalled) {
  journal_.set_active(true);
  const auto journalled = [&] {
    std::string bytes;
    journal_.take(bytes);
    return bytes;
  };
  ASSERT_EQ(reserve("f", "0.01", "100", {"DELETABLE", "REGIONS", "7"}), kOk);
  const std::string made = journalled();
  EXPECT_NE(made.find(bulk("LAYOUT") + bulk("regions")), std::string::npos);
  EXPECT_NE(made.find(bulk("REGIONS") + bulk("7")), std::string::npos);
  run({"BF.MADD", "f", "a", "b", "c"});
  journalled();
  const uint64_t changes = state_.changes.load();
  run({"BF.DEL", "f", "a", "x", "c"});
  EXPECT_EQ(journalled(), array({bulk("BF.DEL"), bulk("f"), bulk("a"), bulk("c")}));
  EXPECT_EQ(state_.changes.load(), changes + 1);
  run({"BF.DEL", "f", "a", "x"});
  EXPECT_EQ(journalled(), "");
  EXPECT_EQ(state_.changes.load(), changes + 1);
}

TEST_F(BloomDeletionCommandsTest, WorksInATransactionAndWakesWatchers) {
  ASSERT_EQ(reserve("f", "0.01", "100", {"DELETABLE"}), kOk);
  run({"BF.ADD", "f", "a"});
  run({"WATCH", "f"});
  run_as_other({"BF.DEL", "f", "never"});
  run({"MULTI"});
  run({"BF.DEL", "f", "a"});
  run({"BF.EXISTS", "f", "a"});
  EXPECT_EQ(run({"EXEC"}), array({array({integer(1)}), integer(0)}));
  run({"BF.ADD", "f", "a"});
  run({"WATCH", "f"});
  run_as_other({"BF.DEL", "f", "a"});
  run({"MULTI"});
  run({"BF.ADD", "f", "b"});
  EXPECT_EQ(run({"EXEC"}), "*-1\r\n");
}

TEST_F(BloomDeletionCommandsTest, PlanAndStatsTellTheResidue) {
  const std::string plan = run({"BF.PLAN", "0.01", "1000", "DELETABLE", "REGIONS", "10"});
  EXPECT_NE(plan.find(bulk("predicted residue") + "*8\r\n" + bulk("25%")), std::string::npos);
  EXPECT_EQ(run({"BF.PLAN", "0.01", "1000"}).find("residue"), std::string::npos);
  const std::string fingerprints = run({"BF.PLAN", "0.01", "1000", "DELETABLE"});
  EXPECT_NE(fingerprints.find(bulk("60%") + bulk("0") + bulk("100%") + bulk("0")),
            std::string::npos);
  ASSERT_EQ(reserve("f", "0.01", "1000", {"DELETABLE"}), kOk);
  EXPECT_NE(run({"BF.STATS", "f"}).find(bulk("predicted residue") + bulk("0")), std::string::npos);
  ASSERT_EQ(reserve("r", "0.01", "1000", {"DELETABLE", "REGIONS", "10"}), kOk);
  for (uint64_t i = 0; i < 1000; ++i) run({"BF.ADD", "r", item(i)});
  const std::string stats = run({"BF.STATS", "r"});
  EXPECT_NE(stats.find(bulk("predicted residue") + "$"), std::string::npos);
  EXPECT_EQ(stats.find(bulk("predicted residue") + bulk("0")), std::string::npos);
}

}  // namespace
}  // namespace server
