// SPDX-License-Identifier: MIT
#include "server/durability/data/data_writer.h"

#include <gtest/gtest.h>

#include <chrono>

#include "persistence/aof/aof_reader.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/base/config/config.h"
#include "server/replication/stream/replication.h"
#include "tests/support/command_test.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

class DataWriterTest : public CommandTest {
 protected:
  DataWriter writer_{{config_, clock_, keyspace_, journal_, disk_, state_}};
};

TEST_F(DataWriterTest, WithoutAStreamThereIsNothingToHold) {
  EXPECT_FALSE(writer_.hold_stream(core::keyspace::Locking::kTake).owns_lock());
  EXPECT_FALSE(writer_.position());
}

TEST_F(DataWriterTest, TheStreamIsHeldUnlessTheCallerHasIt) {
  writer_.set_stream(&replication_);
  const auto held = writer_.hold_stream(core::keyspace::Locking::kTake);
  EXPECT_TRUE(held.owns_lock());
  EXPECT_FALSE(writer_.hold_stream(core::keyspace::Locking::kHeld).owns_lock());
  EXPECT_FALSE(writer_.position()) << "no replica has asked for the stream";
  replication_.begin_backlog();
  EXPECT_TRUE(writer_.position());
}

TEST_F(DataWriterTest, TheOptionSaysHowABaseIsWritten) {
  EXPECT_EQ(writer_.base_format(), persistence::AofBaseFormat::kRdb);
  run({"SET", "key", "value"});
  EXPECT_EQ(run({"CONFIG", "SET", "aof-use-rdb-preamble", "no"}), kOk);
  EXPECT_EQ(writer_.base_format(), persistence::AofBaseFormat::kCommands);
  ASSERT_TRUE(writer_.write_base(writer_.base_format(), "base", writer_.options(true)));
  EXPECT_NE(disk_.content("base")->find("SET"), std::string::npos);
  ASSERT_TRUE(writer_.write_base(persistence::AofBaseFormat::kRdb, "base", writer_.options(true)));
  EXPECT_TRUE(disk_.content("base")->starts_with("REDIS"));
}

TEST_F(DataWriterTest, UsedMemoryIsWritten) {
  const uint64_t before = writer_.options(false).used_memory_bytes;
  EXPECT_GT(before, 0U);
  run({"BF.RESERVE", "big", "0.01", "10000000"});
  EXPECT_GT(writer_.options(false).used_memory_bytes, before + 10'000'000);
}

TEST_F(DataWriterTest, KeysAreSavedSlowlyWhereDebugIsAllowed) {
  config_.replace(OptionId::kEnableDebugCommand, "yes");
  run({"SET", "a", "1"});
  run({"SET", "b", "1"});
  EXPECT_FALSE(writer_.options(false).after_key);
  EXPECT_EQ(run({"CONFIG", "SET", "rdb-key-save-delay", "2000"}), kOk);
  for (const bool is_base : {false, true}) {
    const auto start = std::chrono::steady_clock::now();
    const auto written =
        is_base ? writer_.write_base(persistence::AofBaseFormat::kCommands, "base",
                                     writer_.options(true))
                : writer_.write_snapshot(writer_.snapshot_place(), writer_.options(false));
    ASSERT_TRUE(written);
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(4)) << is_base;
  }
  config_.replace(OptionId::kEnableDebugCommand, "no");
  EXPECT_FALSE(writer_.options(false).after_key);
}

TEST_F(DataWriterTest, AFailedSnapshotLeavesNoFile) {
  disk_.restart_count();
  disk_.fail_from_operation(2);
  EXPECT_FALSE(writer_.write_snapshot(writer_.snapshot_place(), writer_.options(false)));
  EXPECT_FALSE(disk_.exists(writer_.snapshot_path()));
}

}  // namespace
}  // namespace server
