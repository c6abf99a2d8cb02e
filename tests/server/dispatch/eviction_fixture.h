// SPDX-License-Identifier: MIT
//
// EvictionFixture: a keyspace with a memory limit, and its eviction.
//
// Thread safety: belongs to one thread.
#pragma once

#include <functional>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/keyspace/reclaimer.h"
#include "persistence/journal.h"
#include "protocol/reply_parser.h"
#include "server/base/metrics/gauges.h"
#include "server/base/process/memory_monitor.h"
#include "server/dispatch/eviction.h"
#include "server/dispatch/pause_gate.h"
#include "tests/support/key_test.h"

namespace server {

// The clock does not advance, so the time limit of an eviction has no effect.
class EvictionFixture : public KeyTest {
 protected:
  std::function<void()> posted_;
  std::set<std::string> replayed_;
  std::function<void()> on_evicted_ = [] {};
  Eviction eviction_{
      {config_, clock_, keyspace_, reclaimer_, state_,
       [this] { return pause_.holds_back(kWrite, clock_.now_ms); },
       [this](unsigned database, std::string_view key) {
         journal_.append(database, std::array<std::string_view, 2>{"DEL", key});
         on_evicted_();
       },
       [](int64_t) {}, [this](std::function<void()> task) { posted_ = std::move(task); }, memory_,
       gauges_},
      1};
  EvictionFixture() {
    memory_.set_room_maker(&eviction_);
    journal_.set_active(true);
  }
  void set_policy(const std::string& policy) {
    ASSERT_EQ(run({"CONFIG", "SET", "maxmemory-policy", policy}), kOk);
  }
  // Sets `count` strings of at least one KiB.
  void fill(int count, const std::string& prefix = "k") {
    for (int i = 0; i < count; ++i) put(prefix + std::to_string(i), std::string(1100, 'v'));
  }
  // Sets the limit to the used memory plus `more_bytes`.
  void limit_to_used(int64_t more_bytes = 0) {
    // After FLUSHALL another thread frees the memory, so wait until that thread has finished.
    while (reclaimer_.pending() != 0) std::this_thread::yield();
    const uint64_t limit = memory_.refresh() + static_cast<uint64_t>(more_bytes);
    memory_.set_limit(limit);
  }
  std::string journalled() {
    std::string taken;
    journal_.take(taken);
    return taken;
  }
  // Applies SET and DEL of the journal, as a replica or recovery does.
  void replay(const std::string& stream) {
    std::string_view rest = stream;
    protocol::ReplyParser parser;
    while (parser.parse(rest) == protocol::ReplyParser::Status::kReply) {
      rest.remove_prefix(parser.consumed());
      const auto& words = parser.reply().elements;
      if (words[0].text == "SET") replayed_.insert(words[1].text);
      if (words[0].text == "DEL") replayed_.erase(words[1].text);
      if (rest.empty()) break;
    }
  }
  static std::vector<std::string> words_of(const std::string& line) {
    std::istringstream words(line);
    return {std::istream_iterator<std::string>(words), {}};
  }
  uint64_t evicted() const { return gauges_.evicted_keys; }
  std::string set_many(int count, const std::string& prefix = "new") {
    std::string last;
    for (int i = 0; i < count; ++i) {
      last = run({"SET", prefix + std::to_string(i), std::string(1100, 'v')});
      if (last != kOk) return last;
      if (i % 100 == 0) journalled();  // unread journal bytes take memory too
    }
    return last;
  }
};

}  // namespace server
