// SPDX-License-Identifier: MIT
//
// A leader's snapshot replaces all data of a replica. If any operation fails, memory and disk must
// contain all of the old data, all of the new data, or no data.
#include "server/durability/loading/data_replacer.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "persistence/aof/aof_writer.h"
#include "persistence/journal.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/base/config/config.h"
#include "server/base/process/command_drain.h"
#include "server/base/process/memory_monitor.h"
#include "server/base/process/server_state.h"
#include "server/durability/durability.h"
#include "server/durability/durability_parts.h"
#include "server/durability/loading/data_loader.h"
#include "server/durability/log/append_log.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/saves.h"
#include "server/durability/saves/snapshot_saver.h"
#include "server/session/session.h"
#include "tests/support/manual_clock.h"
#include "tests/support/snapshots.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

using core::keyspace::Keyspace;
using snapshots::Contents;
using virtual_disk::Unsynced;
using virtual_disk::VirtualDisk;

constexpr std::string_view kReceived = "temp-7-received.rdb";

void put(Keyspace& keyspace, std::string_view name, std::string_view value) {
  const auto key = keyspace.ref(name);
  const auto lock = keyspace.lock_exclusive(key);
  ASSERT_TRUE(keyspace.insert(0, key).set_string(value));
}

// A minimal replayer that executes SET, the only command in the logs of these tests.
class SetReplayer final : public Replayer {
 public:
  explicit SetReplayer(Keyspace& keyspace) : keyspace_(keyspace) {}
  std::string_view execute(persistence::Words words) override {
    if (words[0] == "SET") put(keyspace_, words[1], words[2]);
    return "+OK\r\n";
  }

 private:
  Keyspace& keyspace_;
};

// Simulates the clients' commands that a drain waits for.
struct Commands final : CommandDrain {
  using Callback = std::function<void()>;
  void drain(Callback on_ended) override { on_drain(on_ended); }
  std::function<void(const Callback&)> on_drain = [](const Callback& on_ended) { on_ended(); };
};

struct ReplacingProcess {
  ReplacingProcess(VirtualDisk& disk, bool has_log)
      : durability(
            {{config, clock, keyspace, journal, disk, state},
             SaveMachine{.start_child = SaveChild::start_here, .free_bytes = free_machine_bytes},
             &commands}) {
    const std::array<const char*, 5> options = {"server", "--appendonly", has_log ? "yes" : "no",
                                                "--save", ""};
    EXPECT_TRUE(config.load(static_cast<int>(options.size()), options.data()));
    const auto recovered = durability.recover(
        [this](CommandOrigin) { return std::make_unique<SetReplayer>(keyspace); });
    EXPECT_TRUE(recovered) << recovered.error().message;
    durability.availability.end(Availability::kLoading);
  }
  void write(std::string_view name, std::string_view value) {
    put(keyspace, name, value);
    journal.append(0, std::array<std::string_view, 3>{"SET", name, value});
    (void)durability.append_log.flush();
  }
  // Calls tick() several times, as the server's main thread does, and advances the clock.
  void settle() {
    for (int i = 0; i < 10; ++i) {
      durability.tick();
      clock.now_ms += 10'000;
    }
  }
  Contents contents() const { return snapshots::contents(keyspace); }

  Config config;
  ManualClock clock;
  Keyspace keyspace{2, 1};
  persistence::Journal journal;
  ServerState state;
  Commands commands;
  Durability durability;
};

class DataReplacerTest : public ::testing::TestWithParam<bool> {
 protected:
  DataReplacerTest() {
    put(leader_, "new", "value");
    put(leader_, "both", "new");
    new_ = snapshots::contents(leader_);
  }
  // Creates a simulated disk with old data, and a server process that uses this disk.
  void begin() {
    process_.reset();
    disk_ = std::make_unique<VirtualDisk>();
    process_ = std::make_unique<ReplacingProcess>(*disk_, GetParam());
    process_->write("old", "value");
    process_->write("both", "old");
    if (!GetParam()) {
      ASSERT_TRUE(process_->durability.saves.snapshots.save(core::keyspace::Locking::kTake));
    }
    process_->settle();
    old_ = process_->contents();
    ASSERT_TRUE(persistence::write_rdb_file(*disk_, std::string(kReceived), leader_, {}));
    lost_ = loaded_ = 0;
  }
  core::Result<> replace() {
    Replacement replacement;
    replacement.path = kReceived;
    replacement.on_loaded = [this] {
      ++loaded_;
      on_loaded_();
      EXPECT_TRUE(process_->durability.availability.has(Availability::kLoading));
    };
    replacement.on_lost = [this] { ++lost_; };
    return process_->durability.replace_data(replacement);
  }
  Contents after_restart() {
    process_.reset();
    return ReplacingProcess(*disk_, GetParam()).contents();
  }

  Keyspace leader_{2, 1};
  Contents new_;
  Contents old_;
  std::unique_ptr<VirtualDisk> disk_;
  std::unique_ptr<ReplacingProcess> process_;
  int lost_ = 0;
  int loaded_ = 0;
  std::function<void()> on_loaded_ = [] {};
};

TEST_P(DataReplacerTest, TheNewDataTakeThePlaceOfTheOld) {
  begin();
  ASSERT_TRUE(replace());
  EXPECT_EQ(loaded_, 1);
  EXPECT_EQ(lost_, 0);
  EXPECT_FALSE(process_->durability.availability.any());
  EXPECT_EQ(process_->contents(), snapshots::contents(leader_));
  EXPECT_FALSE(disk_->exists(std::string(kReceived)));
  EXPECT_TRUE(disk_->exists("dump.rdb"));
  process_->settle();
  EXPECT_EQ(process_->durability.log_is_on(), GetParam());
  process_->write("later", "1");
  const Contents with_later = process_->contents();
  const Contents found = after_restart();
  EXPECT_EQ(found, GetParam() ? with_later : snapshots::contents(leader_));
}

TEST_P(DataReplacerTest, CancelledReplacementChangesNothing) {
  begin();
  Replacement replacement;
  replacement.path = kReceived;
  replacement.may_begin = [] { return false; };
  EXPECT_FALSE(process_->durability.replace_data(replacement));
  EXPECT_EQ(process_->contents(), old_);
  EXPECT_FALSE(process_->durability.availability.any());
  EXPECT_TRUE(replace()) << "nothing is left claimed";
}

class DataReplacerLogTest : public DataReplacerTest {};

// Once a replica has loaded the new data, its link counts as up, and its data may be the only copy.
// So from then on a restart must find the new data.
TEST_P(DataReplacerTest, AStartFindsTheNewDataAsSoonAsTheyAreReliedOn) {
  begin();
  on_loaded_ = [this] {
    disk_->restart_count();
    disk_->fail_from_operation(1);
  };
  (void)replace();
  disk_->cut_power(Unsynced::kLost);
  EXPECT_EQ(after_restart(), new_);
}

TEST_P(DataReplacerTest, EarlyWritesAreFoundWithTheNewData) {
  begin();
  ASSERT_TRUE(replace());
  process_->write("later", "1");
  const Contents with_later = process_->contents();
  disk_->cut_power(Unsynced::kLost);
  EXPECT_EQ(after_restart(), GetParam() ? with_later : new_);
}

TEST_P(DataReplacerTest, WithoutLinksTheSnapshotIsCopied) {
  begin();
  disk_->refuse_links();
  ASSERT_TRUE(replace());
  process_->write("later", "1");
  const Contents with_later = process_->contents();
  disk_->cut_power(Unsynced::kLost);
  EXPECT_EQ(after_restart(), GetParam() ? with_later : new_);
}

TEST_P(DataReplacerLogTest, NoRoomForACopyLeavesTheOldData) {
  begin();
  disk_->refuse_links();
  disk_->set_free_bytes(10);
  EXPECT_FALSE(replace());
  EXPECT_EQ(lost_, 0);
  EXPECT_EQ(process_->contents(), old_);
  disk_->set_free_bytes(virtual_disk::kNever);
  process_->write("later", "1");
  const Contents with_later = process_->contents();
  EXPECT_EQ(after_restart(), with_later);
}

// If the log's base file with the new data cannot be written, a restart would find the old data. So
// new writes are rejected until the base file is written.
TEST_P(DataReplacerLogTest, FailingLogRejectsWritesUntilItWorks) {
  begin();
  disk_->restart_count();
  ASSERT_TRUE(replace());
  const uint64_t count = disk_->operation_count();
  bool has_been_refused = false;
  for (uint64_t number = 1; number <= count; ++number) {
    begin();
    disk_->restart_count();
    disk_->fail_operation(number);
    const bool is_replaced = replace().has_value();
    disk_->fail_operation(virtual_disk::kNever);
    if (!is_replaced || lost_ > 0) continue;
    Availability& availability = process_->durability.availability;
    const bool refuses = availability.has(Availability::kAppendLogFails);
    has_been_refused = has_been_refused || refuses;
    if (refuses) {
      EXPECT_FALSE(process_->durability.append_log.takes_more()) << number;
    }
    process_->write("later", "1");
    const Contents with_later = process_->contents();
    if (refuses) {
      process_->settle();
      EXPECT_FALSE(process_->durability.log_writer().needs_base()) << number;
      EXPECT_FALSE(process_->durability.log_writer().has_lost_sync()) << number;
    }
    disk_->cut_power(Unsynced::kLost);
    EXPECT_EQ(after_restart(), with_later) << number << (refuses ? " refused" : "");
  }
  EXPECT_TRUE(has_been_refused);
}

// A write may have passed its checks before the server began to load, and may still wait for its
// locks. The old data must not be replaced before this write ends.
TEST_P(DataReplacerTest, AWriteThatHadBegunEndsBeforeTheOldDataGo) {
  begin();
  int drains = 0;
  process_->commands.on_drain = [&](const std::function<void()>& on_ended) {
    ++drains;
    EXPECT_TRUE(process_->durability.availability.has(Availability::kLoading));
    EXPECT_EQ(process_->contents(), old_);
    process_->write("new", "of a client");
    on_ended();
  };
  ASSERT_TRUE(replace());
  EXPECT_EQ(drains, 1);
  EXPECT_EQ(process_->contents(), snapshots::contents(leader_));
}

TEST_P(DataReplacerTest, AnEndOfTheServerIsNotHinderedByACommand) {
  begin();
  process_->commands.on_drain = [this](const auto&) { process_->durability.loader.cancel(); };
  EXPECT_FALSE(replace());
  EXPECT_EQ(process_->contents(), old_);
  EXPECT_FALSE(process_->durability.availability.any());
}

TEST_P(DataReplacerTest, AnyFailureLeavesTheOldOrTheNewOrNothing) {
  const Contents fresh = snapshots::contents(leader_);
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; ++number) {
    begin();
    disk_->restart_count();
    disk_->fail_operation(number);
    const auto replaced = replace();
    process_->settle();
    has_failed = disk_->operation_count() >= number;
    disk_->fail_operation(virtual_disk::kNever);
    const Contents found = process_->contents();
    EXPECT_EQ(loaded_, replaced ? 1 : 0);
    EXPECT_EQ(found, replaced ? fresh : lost_ == 0 ? old_ : Contents()) << number;
    process_->settle();
    const Contents restarted = after_restart();
    EXPECT_TRUE(restarted == old_ || restarted == fresh || restarted == found) << number;
  }
}

TEST_P(DataReplacerTest, ACrashLeavesTheOldOrTheNew) {
  const Contents fresh = snapshots::contents(leader_);
  bool has_failed = true;
  for (uint64_t number = 1; has_failed; ++number) {
    begin();
    disk_->restart_count();
    disk_->fail_from_operation(number);
    (void)replace();
    process_->settle();
    has_failed = disk_->operation_count() >= number;
    disk_->cut_power(Unsynced::kPartial);
    const Contents restarted = after_restart();
    EXPECT_TRUE(restarted == old_ || restarted == fresh) << number;
  }
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutLog, DataReplacerTest, ::testing::Bool());
INSTANTIATE_TEST_SUITE_P(WithLog, DataReplacerLogTest, ::testing::Values(true));

}  // namespace
}  // namespace server
