// SPDX-License-Identifier: MIT
//
// Every filter that commands can create is written, read back, and written again as the same bytes.
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/support/command_test.h"
#include "tests/support/sanitized.h"

namespace server {
namespace {

using WordList = std::vector<std::string>;

class StoredFilters : public CommandTest {
 protected:
  static std::string content(const std::string& reply) {
    const size_t start = reply.find("\r\n") + 2;
    return reply.size() < start + 2 ? "" : reply.substr(start, reply.size() - start - 2);
  }
  WordList reserve(const WordList& options) {
    WordList command{"BF.RESERVE", "f", "0.0001"};
    command.insert(command.end(), options.begin(), options.end());
    return command;
  }
  WordList items(const std::string& name, uint64_t count, uint64_t range) {
    WordList command{name, "f"};
    for (uint64_t i = 0; i < count; ++i) command.push_back(std::to_string(random_() % range));
    return command;
  }
  // Adds `count` new items by one BF.MADD.
  void add_new(int count) {
    WordList command{"BF.MADD", "f"};
    for (int i = 0; i < count; ++i) command.push_back(fmt::format("new:{}", ++number_));
    run(command);
  }
  void expect_same_when_restored() {
    const std::string dumped = run({"DUMP", "f"});
    ASSERT_EQ(run({"RESTORE", "copy", "0", content(dumped), "REPLACE"}), kOk);
    ASSERT_TRUE(run({"DUMP", "copy"}) == dumped);
  }
  int64_t layers() {
    const std::string reply = run({"BF.INFO", "f", "FILTERS"});
    return std::stoll(reply.substr(reply.find(':') + 1));
  }

  std::mt19937_64 random_{57};
  int number_ = 0;
};

TEST_F(StoredFilters, AreTheSameAfterAnyCommands) {
  const std::vector<WordList> kinds = {
      {"1", "EXPANSION", "1"},
      {"8"},
      {"200", "NONSCALING"},
      {"2", "EXPANSION", "1", "LAYOUT", "redisbloom"},
      {"10", "EXPANSION", "2", "LAYOUT", "valkey-bloom"},
      {"1", "EXPANSION", "1", "LAYOUT", "valkey-bloom", "TIGHTENING", "0.99"},
      {"5", "EXPANSION", "1", "DELETABLE"},
      {"20", "DELETABLE"},
      {"5", "EXPANSION", "1", "DELETABLE", "REGIONS", "1"},
      {"20", "DELETABLE", "REGIONS", "4"},
      {"1", "EXPANSION", "1", "WINDOW", "32", "GENERATIONS", "16"},
      {"50", "WINDOW", "4", "GENERATIONS", "4", "REFRESH"},
      {"50", "NONSCALING", "WINDOW", "64", "GENERATIONS", "64"},
      {"1", "EXPANSION", "1", "WINDOW", "100", "ITEMS", "GENERATIONS", "7"},
      {"40", "WINDOW", "64", "ITEMS", "GENERATIONS", "64", "REFRESH"},
  };
  constexpr int kSteps = support::rounds(120, 20);
  for (const WordList& kind : kinds) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(kind, " ")));
    run({"DEL", "f"});
    ASSERT_EQ(run(reserve(kind)), kOk);
    const bool is_deletable = std::ranges::find(kind, "DELETABLE") != kind.end();
    for (int step = 0; step < kSteps && !HasFatalFailure(); ++step) {
      switch (random_() % 8) {
        case 0:
          advance_ms(static_cast<int64_t>(random_() % 5000));
          break;
        case 1:
          if (random_() % 16 == 0) run({"BF.CLEAR", "f"});
          break;
        case 2:
        case 3:
          run(items(is_deletable ? "BF.DEL" : "BF.MADD", 1 + random_() % 30, 300));
          break;
        case 4:
          add_new(1 + static_cast<int>(random_() % 40));
          break;
        default:
          run(items("BF.MADD", 1 + random_() % 30, 300));
      }
      expect_same_when_restored();
    }
  }
}

TEST_F(StoredFilters, WindowsThatGrewToTheirLimitStillRotate) {
  ASSERT_EQ(run(reserve({"1", "EXPANSION", "1", "WINDOW", "32", "GENERATIONS", "16"})), kOk);
  for (int generation = 0; generation < 5; ++generation) {
    add_new(1000);
    advance_ms(2000);
  }
  EXPECT_EQ(layers(), 4095);
  expect_same_when_restored();
  int64_t most = 0;
  for (int turn = 0; turn < 40 && !HasFatalFailure(); ++turn) {
    const std::string item = fmt::format("turn:{}", turn);
    ASSERT_EQ(run({"BF.ADD", "f", item}), integer(1));
    EXPECT_EQ(run({"BF.EXISTS", "f", item}), integer(1));
    most = std::max(most, layers());
    if (turn % support::rounds(4, 20) == 0) expect_same_when_restored();
    advance_ms(2000);
  }
  EXPECT_GT(most, 4095);
  EXPECT_EQ(layers(), 17);
}

TEST_F(StoredFilters, WindowsOfItemsThatGrewToTheirLimitStillRotate) {
  // Number of items per generation. Each new item gets its own layer, so five generations have
  // 4,095 layers.
  constexpr int kQuota = 819;
  const std::string length = std::to_string(16 * kQuota);
  // Clients may not create such a window, because it will need too many layers.
  TestClient replay(*this);
  replay.session->origin = CommandOrigin::kOwnJournal;
  ASSERT_EQ(
      replay.run(reserve({"1", "EXPANSION", "1", "WINDOW", length, "ITEMS", "GENERATIONS", "16"})),
      kOk);
  add_new(5 * kQuota);
  // If a new item is a false positive, the filter does not store the item and adds no layer. So
  // further items are added until the filter has 4,095 layers.
  for (int more = 0; more < 50 && layers() < 4095; ++more) add_new(1);
  ASSERT_EQ(layers(), 4095);
  ASSERT_EQ(run({"BF.ADD", "f", "next"}), integer(1));
  EXPECT_EQ(layers(), 4096);
  expect_same_when_restored();
}

}  // namespace
}  // namespace server
