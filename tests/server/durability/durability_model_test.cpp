// SPDX-License-Identifier: MIT
//
// Compares a server on a simulated disk with a naive model. Commands, writes, syncs, rewrites and
// log switches come in random order, and disk operations fail. Then the server is killed and
// restarted.
//
// The journal is one ordered stream, so a start must find the state after some command or
// transaction. All commands that were synced before a power cut, or written before a kill, must be
// included. BLOOMERY_MODEL_RUNS=n makes n runs, BLOOMERY_MODEL_SEED=n repeats one seed alone.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "persistence/aof/aof_writer.h"
#include "protocol/output_buffer.h"
#include "server/base/log/log.h"
#include "server/cluster/view.h"
#include "server/commands/families.h"
#include "server/dispatch/command_replayer.h"
#include "server/durability/loading/log_switch.h"
#include "server/durability/log/append_log.h"
#include "server/durability/saves/base_rewriter.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/session/pubsub/pub_sub.h"
#include "tests/support/environment.h"
#include "tests/support/manual_clock.h"
#include "tests/support/sanitized.h"
#include "tests/support/server_parts.h"

namespace server {
namespace {

using persistence::AofWriter;
using virtual_disk::Unsynced;
using virtual_disk::VirtualDisk;
using WordList = std::vector<std::string>;

constexpr auto kRuns = support::rounds<uint64_t>(1'000, 20);

constexpr int kDatabases = 2;
const std::vector<std::string> kStrings = {"s0", "s1", "n0"};
const std::vector<std::string> kFilters = {"f0", "f1"};
const std::vector<std::string> kItems = {"a", "b", "c", "d", "e", "f", "g", "h"};

struct ModelValue {
  std::string text;
  std::set<std::string> items;
  bool is_filter = false;
  int64_t expires_ms = -1;

  bool is_there(int64_t now_ms) const { return expires_ms < 0 || expires_ms > now_ms; }
};

// A naive model of the server's data: a map from (database, key) to values.
class Twin {
 public:
  void forget_expired(int64_t now_ms) {
    std::erase_if(values_, [&](const auto& pair) { return !pair.second.is_there(now_ms); });
  }
  void erase(int database, const std::string& key) { values_.erase({database, key}); }
  bool has(int database, const std::string& key) const { return values_.contains({database, key}); }
  ModelValue& value(int database, const std::string& key) { return values_[{database, key}]; }

  std::string picture(int64_t now_ms) const {
    std::string text;
    for (int database = 0; database < kDatabases; ++database) {
      for (const auto* keys : {&kStrings, &kFilters}) {
        for (const std::string& key : *keys) {
          const auto found = values_.find({database, key});
          const bool is_there = found != values_.end() && found->second.is_there(now_ms);
          text += key + (is_there ? describe(found->second) : " -") + "\n";
        }
      }
    }
    return text;
  }

 private:
  static std::string describe(const ModelValue& value) {
    std::string text = " expires " + std::to_string(value.expires_ms) + " ";
    if (!value.is_filter) return text + value.text;
    text += std::to_string(value.items.size()) + ":";
    for (const std::string& item : kItems) text += value.items.contains(item) ? '1' : '0';
    return text;
  }

  std::map<std::pair<int, std::string>, ModelValue> values_;
};

// One process of the server, from its start to its end.
class Life {
 public:
  persistence::Journal journal;

  Life(const Registry& registry, Config& config, ManualClock& clock, VirtualDisk& disk)
      : clock_(clock),
        users_(acl_table_of(registry)),
        statistics_(1, registry.size()),
        observer_(config, clock, ticks_, 1, [](size_t) {}),
        durability({{config, clock, keyspace_, journal, disk, state_}, SaveChild::start_here}),
        replication_({{config, clock, keyspace_, journal, disk, state_}, durability}),
        leader_({{config, clock, keyspace_, journal, disk, state_}, durability}, replication_,
                pause_, surroundings_),
        replica_controller_({{{config, clock, keyspace_, journal, disk, state_}, durability},
                             replication_,
                             clients_},
                            leader_, pause_),
        shutdown_({{{config, clock, keyspace_, journal, disk, state_}, durability},
                   replication_,
                   leader_,
                   pause_,
                   surroundings_}),
        services_{{config, clock, keyspace_, reclaimer_, journal, registry, pubsub_, key_events_,
                   tracking_, statistics_, memory_, pause_, state_, replication_, observer_, users_,
                   cluster_, services_},
                  ticks_,
                  clients_,
                  durability,
                  replication_,
                  leader_,
                  replica_controller_,
                  shutdown_,
                  gauges_,
                  facts_},
        session_(1),
        dispatcher_(services_, statistics_.thread(0), session_) {
    session_.authenticated = true;
    keyspace_.set_hooks([this](unsigned database, std::string_view key) {
      journal.append(database, std::array<std::string_view, 2>{"DEL", key});
    });
  }
  ~Life() { dispatcher_.end_session(); }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  core::Result<> recover() {
    return durability.recover([this](CommandOrigin origin) {
      return std::make_unique<CommandReplayer>(services_, origin);
    });
  }

  std::string run(const WordList& command) {
    const std::vector<std::string_view> args(command.begin(), command.end());
    protocol::OutputBuffer replies;
    dispatcher_.execute(args, clock_.now_ms, replies);
    return std::string(replies.view());
  }

  // Returns the server's data as text, in the same format as Twin::picture().
  std::string picture() {
    std::string text;
    for (int database = 0; database < kDatabases; ++database) {
      run({"SELECT", std::to_string(database)});
      for (const std::string& key : kStrings) text += key + describe(key, false) + "\n";
      for (const std::string& key : kFilters) text += key + describe(key, true) + "\n";
    }
    return text;
  }

 private:
  std::string describe(const std::string& key, bool is_filter) {
    if (run({"EXISTS", key}) == ":0\r\n") return " -";
    std::string text = " expires " + line(run({"PEXPIRETIME", key})).substr(1) + " ";
    if (!is_filter) {
      const std::string reply = run({"GET", key});
      const size_t begin = reply.find('\n') + 1;
      return text + reply.substr(begin, reply.size() - begin - 2);
    }
    text += line(run({"BF.CARD", key})).substr(1) + ":";
    for (const std::string& item : kItems) text += run({"BF.EXISTS", key, item})[1];
    return text;
  }
  static std::string line(const std::string& reply) { return reply.substr(0, reply.find('\r')); }

  ManualClock& clock_;
  TickClock ticks_;
  core::keyspace::Reclaimer reclaimer_;
  core::keyspace::Keyspace keyspace_{kDatabases, 1};
  acl::Users users_;
  cluster::ClusterState cluster_{1};
  Clients clients_;
  TestThreads threads_;
  PubSub pubsub_{1, threads_};
  Statistics statistics_;
  MemoryMonitor memory_;
  PauseGate pause_{threads_};
  Surroundings surroundings_;
  Gauges gauges_;
  ProcessFacts facts_{std::string(40, 'a'), "bloomery-server", 1'700'000'000'000, 1, ""};
  ServerState state_;
  KeyEvents key_events_{pubsub_, state_.listeners};
  Tracking tracking_{pubsub_, state_, 1};
  Observer observer_;

 public:
  Durability durability;

 private:
  Replication replication_;
  Leader leader_;
  ReplicaController replica_controller_;
  Shutdown shutdown_;
  Services services_;
  Session session_;
  Dispatcher dispatcher_;
};

class World {
 public:
  World(const Registry& registry, uint64_t seed)
      : registry_(registry), random_(seed), disk_(seed + 1) {
    const std::vector<NamedValue> options = {{"bf-error-rate", "0.0000001"}, {"save", ""}};
    (void)config_.set(options);
    states_.push_back({0, {}});
  }

  // Runs random operations on the server and the model. Returns the error, or "".
  std::string run() {
    for (int lives = 1 + number(3); lives > 0; --lives) {
      if (!begin_life()) return trouble_;
      for (int steps = number(40); steps > 0 && trouble_.empty(); --steps) step();
      if (!trouble_.empty()) return trouble_;
      end_life();
    }
    return begin_life() ? "" : trouble_;
  }

 private:
  struct State {
    uint64_t offset;  // end offset of the journal in this state; kNever if the append log was off
    Twin twin;
  };
  static constexpr uint64_t kNever = virtual_disk::kNever;

  int number(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  const std::string& one_of(const std::vector<std::string>& words) {
    return words[static_cast<size_t>(number(static_cast<int>(words.size())))];
  }

  // Starts a process. Returns false after an error, or if the disk has lost bytes.
  bool begin_life() {
    for (int faults = number(3); faults > 0 && !may_be_damaged_; --faults) {
      disk_.restart_count();
      if (number(2) == 0) {
        disk_.fail_operation(1 + static_cast<uint64_t>(number(40)));
      } else {
        disk_.fail_from_operation(1 + static_cast<uint64_t>(number(40)));
      }
      make_life();
      // A start may succeed although some operations fail. The server must then have a valid state.
      if (life_->recover() && !find_state()) return false;
      life_.reset();
      record_damage();
      if (number(2) == 0) {
        disk_.cut_power(any_unsynced());
        least_ = safe_;
      }
    }
    disk_.restart_count();
    disk_.set_free_bytes(kNever);
    make_life();
    if (auto recovered = life_->recover(); !recovered) {
      if (!may_be_damaged_) trouble_ = "the start failed: " + recovered.error().message;
      return false;
    }
    return find_state() && !may_be_damaged_;
  }
  void record_damage() { may_be_damaged_ = may_be_damaged_ || disk_.has_given_up(".incr.aof"); }
  void make_life() { life_ = std::make_unique<Life>(registry_, config_, clock_, disk_); }
  Unsynced any_unsynced() {
    constexpr Unsynced kAll[] = {Unsynced::kLost, Unsynced::kKept, Unsynced::kPartial};
    return kAll[number(3)];
  }

  bool find_state() {
    const std::string picture = life_->picture();
    for (size_t i = states_.size(); i-- > least_;) {
      if (states_[i].twin.picture(clock_.now_ms) != picture) continue;
      Twin twin = states_[i].twin;
      twin.forget_expired(clock_.now_ms);
      states_ = {{life_->journal.end_offset(), std::move(twin)}};
      least_ = safe_ = written_ = rewritten_ = 0;
      return true;
    }
    trouble_ = "found\n" + picture + "which is none of the states from the safe one on,\n" +
               states_[least_].twin.picture(clock_.now_ms) + "to the last one,\n" +
               states_.back().twin.picture(clock_.now_ms);
    return false;
  }

  void end_life() {
    record_damage();
    const bool is_killed = number(4) == 0;
    least_ = is_killed ? std::max(safe_, written_) : safe_;
    life_.reset();
    disk_.restart_count();
    if (!is_killed) disk_.cut_power(any_unsynced());
  }

  void step() {
    const int choice = number(100);
    if (choice < 60) {
      command();
    } else if (choice < 70) {
      transaction();
    } else if (choice < 80) {
      life_->durability.append_log.commit(1);
    } else if (choice < 88) {
      flush();
    } else if (choice < 91) {
      (void)life_->durability.request_rewrite();
      tick();
    } else if (choice < 95) {
      tick();
    } else if (choice < 96) {
      life_->durability.log_switch.want(!life_->durability.log_is_on());
      tick();
    } else if (choice < 98) {
      disturb();
    } else {
      clock_.now_ms += number(10'000);
    }
    record_progress();
  }

  void flush() {
    // Writes and syncs the append log, as the log's own thread does when the disk works again.
    if (life_->durability.append_log.flush()) {
      life_->durability.availability.end(Availability::kAppendLogFails);
    }
  }

  void tick() {
    const Durability& durability = life_->durability;
    const uint64_t rewrites = durability.saves.rewrites.record().count;
    const uint64_t forks = durability.saves.slot.fork_count();
    life_->durability.tick();
    // tick() first processes the end of the previous child process, and then may fork the next one.
    if (durability.saves.rewrites.record().count > rewrites) safe_ = std::max(safe_, rewritten_);
    if (durability.saves.slot.fork_count() > forks) rewritten_ = states_.size() - 1;
  }

  void disturb() {
    disk_.restart_count();
    switch (number(4)) {
      case 0:
        return disk_.fail_from_operation(1 + static_cast<uint64_t>(number(10)));
      case 1:
        return disk_.set_free_bytes(static_cast<uint64_t>(number(300)));
      case 2:
        return disk_.set_free_bytes(kNever);
      default:
        return disk_.fail_operation(1 + static_cast<uint64_t>(number(10)));
    }
  }

  void record_progress() {
    const AofWriter& writer = life_->durability.log_writer();
    if (!writer.is_open() || writer.needs_base()) return;
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].offset == kNever) continue;
      if (states_[i].offset <= writer.synced_offset()) safe_ = std::max(safe_, i);
      if (states_[i].offset <= writer.written_offset()) written_ = std::max(written_, i);
    }
  }

  void record_state(Twin twin) {
    const uint64_t offset = life_->durability.log_is_on() ? life_->journal.end_offset() : kNever;
    states_.push_back({offset, std::move(twin)});
  }

  void command() {
    Twin twin = states_.back().twin;
    twin.forget_expired(clock_.now_ms);
    const int database = number(kDatabases);
    life_->run({"SELECT", std::to_string(database)});
    const auto [words, expected] = random_command(twin, database);
    const std::string reply = life_->run(words);
    if (reply.starts_with("-MISCONF")) return record_state(states_.back().twin);
    if (!expected.empty() && reply != expected) trouble_ = words[0] + " answered " + reply;
    record_state(std::move(twin));
  }

  void transaction() {
    Twin twin = states_.back().twin;
    twin.forget_expired(clock_.now_ms);
    const int database = number(kDatabases);
    life_->run({"SELECT", std::to_string(database)});
    life_->run({"MULTI"});
    for (int count = 1 + number(4); count > 0; --count) {
      (void)life_->run(random_command(twin, database).first);
    }
    const bool is_done = life_->run({"EXEC"}).starts_with('*');
    record_state(is_done ? std::move(twin) : states_.back().twin);
  }

  // Applies a random command to the model. Returns the command and its reply; "" means any reply.
  std::pair<WordList, std::string> random_command(Twin& twin, int database) {
    if (number(3) == 0) return filter_command(twin, database);
    const std::string key = one_of({"s0", "s1"});
    switch (number(7)) {
      case 0: {
        ModelValue& value = twin.value(database, key);
        value = {};
        value.text = std::string(static_cast<size_t>(number(8) == 0 ? 700 : number(20)), 'v') +
                     std::to_string(number(100));
        return {{"SET", key, value.text}, "+OK\r\n"};
      }
      case 1:
        twin.value(database, key).text += "more";
        return {{"APPEND", key, "more"}, ""};
      case 2: {
        const std::string gone = one_of({"s0", "s1", "n0", "f0", "f1"});
        twin.erase(database, gone);
        return {{"DEL", gone}, ""};
      }
      case 3:
        return set_bit(twin, database, key);
      case 4: {
        const std::string timed = one_of({"s0", "s1", "n0", "f0", "f1"});
        const int64_t expires_ms = clock_.now_ms + number(20'000) - 1000;
        if (twin.has(database, timed)) twin.value(database, timed).expires_ms = expires_ms;
        if (expires_ms <= clock_.now_ms) twin.erase(database, timed);
        return {{"PEXPIREAT", timed, std::to_string(expires_ms)}, ""};
      }
      default: {
        ModelValue& value = twin.value(database, "n0");
        const int by = number(50);
        value.text = std::to_string((value.text.empty() ? 0 : std::stoll(value.text)) + by);
        return {{"INCRBY", "n0", std::to_string(by)}, ":" + value.text + "\r\n"};
      }
    }
  }

  std::pair<WordList, std::string> set_bit(Twin& twin, int database, const std::string& key) {
    std::string& text = twin.value(database, key).text;
    const auto offset = static_cast<size_t>(number(64));
    if (text.size() <= offset / 8) text.resize(offset / 8 + 1, '\0');
    const int mask = 0x80 >> (offset % 8);
    const bool was_set = (text[offset / 8] & mask) != 0;
    text[offset / 8] = static_cast<char>(text[offset / 8] | mask);
    return {{"SETBIT", key, std::to_string(offset), "1"}, was_set ? ":1\r\n" : ":0\r\n"};
  }

  std::pair<WordList, std::string> filter_command(Twin& twin, int database) {
    const std::string& key = one_of(kFilters);
    // BF.RESERVE fails if the key exists. The first layer holds only two items, so that filters
    // grow.
    if (!twin.has(database, key) && number(3) == 0) {
      twin.value(database, key).is_filter = true;
      return {{"BF.RESERVE", key, "0.0000001", "2", "EXPANSION", "2"}, "+OK\r\n"};
    }
    ModelValue& value = twin.value(database, key);
    value.is_filter = true;
    if (number(2) == 0) {
      const std::string& item = one_of(kItems);
      const bool is_new = value.items.insert(item).second;
      return {{"BF.ADD", key, item}, is_new ? ":1\r\n" : ":0\r\n"};
    }
    WordList words = {"BF.MADD", key};
    std::string reply;
    const int count = 1 + number(4);
    for (int i = 0; i < count; ++i) {
      words.push_back(one_of(kItems));
      reply += value.items.insert(words.back()).second ? ":1\r\n" : ":0\r\n";
    }
    return {words, "*" + std::to_string(count) + "\r\n" + reply};
  }

  const Registry& registry_;
  std::minstd_rand random_;
  Config config_;
  ManualClock clock_;
  VirtualDisk disk_;
  std::unique_ptr<Life> life_;
  std::vector<State> states_;
  size_t safe_ = 0;       // index of the oldest state that is valid after a power cut and a restart
  size_t written_ = 0;    // index of the oldest state that is valid after a kill and a restart
  size_t least_ = 0;      // index of the oldest state that the next start may find
  size_t rewritten_ = 0;  // index of the state that the running rewrite saves

  // True after a failed sync that lost bytes of the append log. The log may then have a hole that a
  // start does not detect, so the run ends with the next start.
  bool may_be_damaged_ = false;
  std::string trouble_;
};

TEST(DurabilityModel, EveryStartFindsAStateThatWasPromised) {
  set_log_level(LogLevel::kNothing);
  const auto registry = *Registry::create(command_families(), {});
  if (const uint64_t seed = support::number_of("BLOOMERY_MODEL_SEED", 0)) {
    EXPECT_EQ(World(*registry, seed).run(), "");
    return;
  }
  for (uint64_t seed = support::number_of("BLOOMERY_MODEL_RUNS", kRuns); seed > 0; --seed) {
    ASSERT_EQ(World(*registry, seed).run(), "") << "BLOOMERY_MODEL_SEED=" << seed;
  }
}

}  // namespace
}  // namespace server
