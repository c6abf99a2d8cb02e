// SPDX-License-Identifier: MIT
#include "server/replication/replica/replica_log.h"

#include <gtest/gtest.h>

#include <string>

#include "persistence/aof/aof_writer.h"
#include "server/durability/durability_parts.h"
#include "server/durability/log/append_log.h"
#include "server/durability/saves/save_child.h"
#include "tests/support/durable_process.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

using durable_process::Process;

class ReplicaLogTest : public testing::Test {
 protected:
  // Appends a command to the log, and records that the next `bytes` bytes of the leader's stream
  // are applied.
  void apply(Process& process, ReplicaLog& log, int64_t bytes) {
    process.append("k", "v");
    offset_ += bytes;
    log.record_applied(offset_);
  }
  void sync(Process& process) { ASSERT_TRUE(process.durability.append_log.flush()); }

  virtual_disk::VirtualDisk disk_;
  int64_t offset_ = 1000;
};

TEST_F(ReplicaLogTest, WithoutALogNothingIsSynced) {
  Process process(disk_, "no", SaveChild::start_here);
  ReplicaLog log(process.durability);
  log.begin(offset_);
  apply(process, log, 30);
  EXPECT_EQ(log.synced_offset(), -1);
  EXPECT_TRUE(process.durability.append_log.takes_more());
}

TEST_F(ReplicaLogTest, LoadedDataCountAsSynced) {
  Process process(disk_, "yes", SaveChild::start_here);
  ReplicaLog log(process.durability);
  log.begin(offset_);
  EXPECT_EQ(log.synced_offset(), 1000);
}

// A new link may continue at the offset where the last link ended. The bytes applied before may not
// be on the disk yet.
TEST_F(ReplicaLogTest, LinkCutDoesNotSyncEarlierBytes) {
  Process process(disk_, "yes", SaveChild::start_here);
  ReplicaLog log(process.durability);
  log.begin(offset_);
  apply(process, log, 30);
  log.begin(offset_);
  EXPECT_EQ(log.synced_offset(), 0);
  apply(process, log, 30);
  EXPECT_EQ(log.synced_offset(), 0);
  sync(process);
  EXPECT_EQ(log.synced_offset(), 1060);
}

// After a full sync the offsets belong to another stream, so they may be lower than before.
TEST_F(ReplicaLogTest, MarksOfAStreamThatHasEndedAreForgotten) {
  Process process(disk_, "yes", SaveChild::start_here);
  ReplicaLog log(process.durability);
  log.begin(offset_);
  apply(process, log, 30);
  log.begin(7);
  sync(process);
  EXPECT_EQ(log.synced_offset(), 7);
}

TEST_F(ReplicaLogTest, FollowsTheSyncsOfTheLog) {
  Process process(disk_, "yes", SaveChild::start_here);
  ReplicaLog log(process.durability);
  log.begin(offset_);
  apply(process, log, 30);
  apply(process, log, 30);
  EXPECT_EQ(log.synced_offset(), 1000);
  sync(process);
  EXPECT_EQ(log.synced_offset(), 1060);
}

TEST_F(ReplicaLogTest, BytesWithoutChangeSyncWithLaterOnes) {
  Process process(disk_, "yes", SaveChild::start_here);
  ReplicaLog log(process.durability);
  log.begin(offset_);
  offset_ += 14;  // size of a PING, which changes no key
  log.record_applied(offset_);
  apply(process, log, 30);
  sync(process);
  EXPECT_EQ(log.synced_offset(), 1044);
}

TEST_F(ReplicaLogTest, ALongQueueIsLateButNeverAhead) {
  Process process(disk_, "yes", SaveChild::start_here);
  ReplicaLog log(process.durability);
  log.begin(offset_);
  constexpr int kMany = 5000;
  for (int i = 0; i < kMany; ++i) apply(process, log, 1);
  EXPECT_EQ(log.synced_offset(), 1000);
  sync(process);
  EXPECT_EQ(log.synced_offset(), offset_);
}

TEST_F(ReplicaLogTest, ReportsAFailedLog) {
  Process process(disk_, "yes", SaveChild::start_here);
  ReplicaLog log(process.durability);
  log.begin(offset_);
  process.durability.append_log.report_failure("no space left");
  const auto takes = process.durability.append_log.takes_more();
  ASSERT_FALSE(takes);
  EXPECT_EQ(takes.error().message, "the append log fails: no space left");
}

}  // namespace
}  // namespace server
