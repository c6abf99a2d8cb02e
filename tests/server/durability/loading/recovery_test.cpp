// SPDX-License-Identifier: MIT
#include "server/durability/loading/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "persistence/aof/aof_directory.h"
#include "persistence/journal.h"
#include "persistence/rdb/rdb_writer.h"
#include "protocol/error_texts.h"
#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/durability/durability_parts.h"
#include "server/durability/loading/load_figures.h"
#include "server/session/session.h"
#include "tests/support/aof_files.h"
#include "tests/support/error_matcher.h"
#include "tests/support/manual_clock.h"
#include "tests/support/snapshots.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

using aof_files::OwnFile;
using ::testing::HasSubstr;

constexpr const char* kSnapshot = "dump.rdb";
const std::string kLogs = "./appendonlydir/";
constexpr const char* kBase = "appendonly.aof.1.base.rdb";
constexpr const char* kFirst = "appendonly.aof.1.incr.aof";
constexpr const char* kSecond = "appendonly.aof.2.incr.aof";

// The commands that were replayed. Each of them gets the reply `reply`.
struct Recorded {
  std::vector<std::string> commands;
  std::vector<CommandOrigin> origins;  // for each replayed file, the origin of its commands
  std::string reply = "+OK\r\n";
};
class RecordingReplayer final : public Replayer {
 public:
  explicit RecordingReplayer(Recorded& recorded) : recorded_(recorded) {}
  std::string_view execute(persistence::Words words) override {
    std::string line;
    for (const std::string_view word : words) line += (line.empty() ? "" : " ") + std::string(word);
    recorded_.commands.push_back(line);
    return recorded_.reply;
  }

 private:
  Recorded& recorded_;
};

class RecoveryTest : public ::testing::Test {
 protected:
  // Loads a configuration with `options`, and calls recover().
  core::Result<Recovered> recover_with(const std::vector<const char*>& options) {
    std::vector<const char*> argv = {"server"};
    argv.insert(argv.end(), options.begin(), options.end());
    EXPECT_TRUE(config_.load(static_cast<int>(argv.size()), argv.data()));
    return recover(parts());
  }
  core::Result<Recovered> recover_log() { return recover_with({"--appendonly", "yes"}); }
  std::string error_of(const core::Result<Recovered>& recovered) {
    return recovered ? "" : recovered.error().message;
  }
  RecoveryParts parts() {
    return {{config_, clock_, keyspace_, journal_, disk_, state_},
            logs_,
            figures_,
            is_cancelled_,
            [this](CommandOrigin origin) {
              recorded_.origins.push_back(origin);
              return std::make_unique<RecordingReplayer>(recorded_);
            },
            on_piece_};
  }

  void put_snapshot(const std::string& path, const std::vector<std::string>& names) {
    snapshots::Container container;
    for (const std::string& name : names) container.string_key(name, "value");
    disk_.put(path, container.sealed());
  }
  void put_manifest(const std::string& lines) {
    disk_.put(kLogs + "appendonly.aof.manifest", lines);
  }
  static std::string line_of(const std::string& name, int number, char type) {
    return "file " + name + " seq " + std::to_string(number) + " type " + type + "\n";
  }
  void put_commands(const std::string& name, const std::vector<std::string>& keys) {
    OwnFile file;
    for (const std::string& key : keys) file.add({"SET", key, "v"});
    file.end_batch();
    disk_.put(kLogs + name, file.bytes());
  }
  bool has(std::string_view name) { return keyspace_.find_any(0, keyspace_.ref(name)) != nullptr; }

  virtual_disk::VirtualDisk disk_;
  Config config_;
  ManualClock clock_;
  persistence::Journal journal_;
  ServerState state_;
  core::keyspace::Keyspace keyspace_{16, 1};
  persistence::AofDirectory logs_{disk_, ".", "appendonlydir",
                                  persistence::AofNames("appendonly.aof")};
  LoadFigures figures_;
  std::atomic<bool> is_cancelled_{false};
  std::function<void()> on_piece_;
  Recorded recorded_;
};

TEST_F(RecoveryTest, AnEmptyDirectoryIsAnEmptyDataSet) {
  for (const char* has_log : {"no", "yes"}) {
    const auto recovered = recover_with({"--appendonly", has_log});
    ASSERT_TRUE(recovered);
    EXPECT_FALSE(recovered->needs_base);
    EXPECT_FALSE(recovered->tail);
    EXPECT_EQ(keyspace_.db_size(0), 0U);
  }
}

TEST_F(RecoveryTest, WithoutALogTheSnapshotIsLoaded) {
  put_snapshot(kSnapshot, {"a", "b"});
  put_commands(kFirst, {"c"});
  const auto recovered = recover_with({"--appendonly", "no"});
  ASSERT_TRUE(recovered);
  EXPECT_EQ(keyspace_.db_size(0), 2U);
  EXPECT_EQ(figures_.loaded_keys, 2U);
  EXPECT_TRUE(recorded_.commands.empty());
}

// If appendonly is switched on and only a snapshot exists, the new log keeps the snapshot's data.
// Redis would ignore the snapshot and start empty.
TEST_F(RecoveryTest, ALogThatBeginsTakesTheSnapshotAlong) {
  put_snapshot(kSnapshot, {"a"});
  const auto recovered = recover_log();
  ASSERT_TRUE(recovered);
  EXPECT_TRUE(recovered->needs_base);
  EXPECT_TRUE(has("a"));
}

TEST_F(RecoveryTest, ALogIsItsBaseAndThenItsFilesInOrder) {
  put_snapshot(kSnapshot, {"not this"});
  put_snapshot(kLogs + kBase, {"a"});
  put_commands(kFirst, {"b", "c"});
  put_commands(kSecond, {"d"});
  put_manifest(line_of(kBase, 1, 'b') + line_of(kFirst, 1, 'i') + line_of(kSecond, 2, 'i'));
  const auto recovered = recover_log();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_TRUE(has("a"));
  EXPECT_FALSE(has("not this"));
  EXPECT_EQ(recorded_.commands, (std::vector<std::string>{"SET b v", "SET c v", "SET d v"}));
  EXPECT_EQ(recorded_.origins,
            (std::vector{CommandOrigin::kOwnJournal, CommandOrigin::kOwnJournal}));
  EXPECT_FALSE(recovered->needs_base);
  ASSERT_TRUE(recovered->tail);
  EXPECT_EQ(recovered->tail->size_bytes, disk_.content(kLogs + kSecond)->size());
  EXPECT_LE(figures_.loaded_bytes, figures_.total_bytes);
}

TEST_F(RecoveryTest, ATornTailIsCut) {
  put_commands(kFirst, {"a", "b"});
  const std::string sound = *disk_.content(kLogs + kFirst);
  disk_.put(kLogs + kFirst, sound + "*3\r\n$3\r\nSET\r\n$1\r\nc");
  put_manifest(line_of(kFirst, 1, 'i'));
  const auto recovered = recover_log();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recorded_.commands, (std::vector<std::string>{"SET a v", "SET b v"}));
  EXPECT_EQ(disk_.content(kLogs + kFirst), sound);
  EXPECT_EQ(recovered->tail->size_bytes, sound.size());
}

TEST_F(RecoveryTest, ATornTailIsRefusedWhereItIsNotToBeCut) {
  put_commands(kFirst, {"a"});
  const std::string torn = *disk_.content(kLogs + kFirst) + "*3\r\n$3\r\nSET\r\n$1\r\nc";
  disk_.put(kLogs + kFirst, torn);
  put_manifest(line_of(kFirst, 1, 'i'));
  const std::string error =
      error_of(recover_with({"--appendonly", "yes", "--aof-load-truncated", "no"}));
  EXPECT_NE(error.find(kFirst), std::string::npos) << error;
  EXPECT_NE(error.find("--check-aof /"), std::string::npos) << error;
  EXPECT_NE(error.find("/appendonlydir/appendonly.aof.manifest`"), std::string::npos) << error;
  EXPECT_TRUE(recorded_.commands.empty());
  EXPECT_EQ(disk_.content(kLogs + kFirst), torn);
}

// Logs of older servers are one file, which may begin with a snapshot.
TEST_F(RecoveryTest, TornTailAfterASnapshotNeedsTheOption) {
  put_snapshot(kLogs + kBase, {"a"});
  const std::string sound = *disk_.content(kLogs + kBase);
  const std::string torn = sound + "*3\r\n$3\r\nSET\r\n$1\r\nc";
  disk_.put(kLogs + kBase, torn);
  put_manifest(line_of(kBase, 1, 'b'));
  const auto refused = recover_with({"--appendonly", "yes", "--aof-load-truncated", "no"});
  EXPECT_THAT(error_of(refused), HasSubstr("torn"));
  EXPECT_EQ(disk_.content(kLogs + kBase), torn);
  delete_all_keys(keyspace_);
  EXPECT_EQ(error_of(recover_with({"--appendonly", "yes", "--aof-load-truncated", "yes"})), "");
  EXPECT_EQ(disk_.content(kLogs + kBase), sound);
  // A crash cannot tear a base before later files, because they are created after it.
  delete_all_keys(keyspace_);
  disk_.put(kLogs + kBase, torn);
  put_commands(kFirst, {});
  put_manifest(line_of(kBase, 1, 'b') + line_of(kFirst, 1, 'i'));
  EXPECT_THAT(error_of(recover_log()), HasSubstr("torn"));
  EXPECT_EQ(disk_.content(kLogs + kBase), torn);
}

TEST_F(RecoveryTest, OnlyTheNewestFileMayBeTorn) {
  put_commands(kFirst, {"a"});
  const std::string torn = *disk_.content(kLogs + kFirst) + "*3\r\n$3\r\nSET\r\n$1\r\nc";
  disk_.put(kLogs + kFirst, torn);
  put_commands(kSecond, {"b"});
  put_manifest(line_of(kFirst, 1, 'i') + line_of(kSecond, 2, 'i'));
  EXPECT_NE(error_of(recover_log()).find(kFirst), std::string::npos);
  EXPECT_TRUE(recorded_.commands.empty());
  EXPECT_EQ(disk_.content(kLogs + kFirst), torn);
  // Only the newest log file that contains commands may end within a command. This also holds if a
  // newer file is empty.
  put_commands(kSecond, {});
  EXPECT_EQ(error_of(recover_log()), "");
  EXPECT_EQ(recorded_.commands, std::vector<std::string>{"SET a v"});
}

TEST_F(RecoveryTest, DamageIsRefusedBeforeAnythingIsLoaded) {
  put_snapshot(kLogs + kBase, {"a"});
  put_commands(kFirst, {"b"});
  std::string bytes = *disk_.content(kLogs + kFirst);
  bytes[bytes.find("b\r\n")] = 'x';
  disk_.put(kLogs + kFirst, bytes);
  put_commands(kSecond, {"c"});
  put_manifest(line_of(kBase, 1, 'b') + line_of(kFirst, 1, 'i') + line_of(kSecond, 2, 'i'));
  EXPECT_NE(error_of(recover_log()).find(kFirst), std::string::npos);
  EXPECT_EQ(keyspace_.db_size(0), 0U);
  EXPECT_TRUE(recorded_.commands.empty());
  EXPECT_EQ(disk_.content(kLogs + kFirst), bytes);
}

TEST_F(RecoveryTest, AFileThatIsNotThereIsNamed) {
  put_commands(kFirst, {"a"});
  put_manifest(line_of(kFirst, 1, 'i') + line_of(kSecond, 2, 'i'));
  EXPECT_NE(error_of(recover_log()).find(kSecond), std::string::npos);
}

TEST_F(RecoveryTest, AnErrorInOurOwnJournalMeansLostData) {
  put_commands(kFirst, {"a"});
  put_manifest(line_of(kFirst, 1, 'i'));
  recorded_.reply = "-ERR broken\r\n";
  const std::string error = error_of(recover_log());
  EXPECT_TRUE(error.ends_with("offset 51: the command SET failed: ERR broken")) << error;
}

TEST_F(RecoveryTest, AForeignJournalMayHoldWhatHadFailed) {
  disk_.put(kLogs + kFirst, aof_files::kSet);
  put_manifest(line_of(kFirst, 1, 'i'));
  recorded_.reply = "-ERR filter is full\r\n";
  const auto recovered = recover_log();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recorded_.origins, std::vector{CommandOrigin::kForeignJournal});
  // The log of another server is not continued: new commands go to a new file.
  EXPECT_FALSE(recovered->tail);
  recorded_.reply = "-OOM no memory\r\n";
  const std::string error = error_of(recover_log());
  EXPECT_TRUE(error.ends_with("offset 0: the command SET failed: OOM no memory")) << error;
}

TEST_F(RecoveryTest, AMissingDatabaseNamesTheOption) {
  recorded_.reply = encoded_error(protocol::kNotADatabase);
  disk_.put(kLogs + kFirst, aof_files::kSet);
  put_manifest(line_of(kFirst, 1, 'i'));
  EXPECT_THAT(error_of(recover_log()), HasSubstr("`databases` is 16; set it to"));
  put_commands(kFirst, {"a"});
  EXPECT_THAT(error_of(recover_log()), HasSubstr("`databases` is 16; set it to"));
}

TEST_F(RecoveryTest, UnknownCommandsAreSkippedOnlyIfAllowed) {
  disk_.put(kLogs + kFirst, aof_files::kSet);
  put_manifest(line_of(kFirst, 1, 'i'));
  recorded_.reply = "-ERR unknown command 'SET'\r\n";
  const std::string error =
      error_of(recover_with({"--appendonly", "yes", "--rdb-foreign-types", "refuse"}));
  EXPECT_TRUE(error.ends_with("unknown command 'SET'; rdb-foreign-types skip leaves them out"))
      << error;
  EXPECT_EQ(error_of(recover_with({"--appendonly", "yes", "--rdb-foreign-types", "skip"})), "");
  EXPECT_EQ(figures_.foreign_keys, 1U);
}

TEST_F(RecoveryTest, AnUnknownCommandInOurOwnJournalMeansLostData) {
  put_commands(kFirst, {"a"});
  put_manifest(line_of(kFirst, 1, 'i'));
  recorded_.reply = "-ERR unknown command 'SET'\r\n";
  for (const char* const choice : {"refuse", "skip"}) {
    const std::string error =
        error_of(recover_with({"--appendonly", "yes", "--rdb-foreign-types", choice}));
    EXPECT_TRUE(error.ends_with("the command SET failed: ERR unknown command 'SET'")) << error;
  }
  EXPECT_EQ(figures_.foreign_keys, 0U);
}

TEST_F(RecoveryTest, SeveralThreadsTellOfDamageAsOneDoes) {
  snapshots::Container container;
  for (int i = 0; i < 4000; ++i) {
    container.string_key("key:" + std::to_string(i), std::string(300, 'v'));
  }
  const std::string whole = container.sealed();
  std::string twice = whole;
  // The snapshot has two faults: key:2000 is renamed to key:1000, which exists already, and a later
  // key is damaged.
  const size_t renamed = whole.find("key:2000");
  twice.replace(renamed, 8, "key:1000");
  twice.insert(whole.find("key:3000") + 100, "x");
  for (const std::string& bytes : {twice, whole.substr(0, whole.size() / 2)}) {
    std::string errors[2];
    for (const bool has_many : {false, true}) {
      disk_.put(kSnapshot, bytes);
      const auto recovered =
          recover_with({"--appendonly", "no", "--io-threads", has_many ? "4" : "1"});
      errors[has_many ? 1 : 0] = error_of(recovered);
      (void)keyspace_.flush_all();
      figures_.total_bytes = 0;
    }
    EXPECT_NE(errors[0], "");
    EXPECT_EQ(errors[1], errors[0]);
  }
  disk_.put(kSnapshot, whole);
  ASSERT_TRUE(recover_with({"--appendonly", "no", "--io-threads", "4"}));
  EXPECT_EQ(keyspace_.db_size(0), 4000U);
  EXPECT_EQ(figures_.loaded_keys, 4000U);
}

TEST_F(RecoveryTest, ADamagedSnapshotIsNamed) {
  put_snapshot(kSnapshot, {"a"});
  std::string bytes = *disk_.content(kSnapshot);
  bytes[bytes.size() - 12] ^= 1;
  disk_.put(kSnapshot, bytes);
  const std::string path = std::filesystem::current_path().string() + "/dump.rdb";
  const std::string error = error_of(recover_with({"--appendonly", "no"}));
  EXPECT_TRUE(error.starts_with("'" + path + "': offset ")) << error;
  EXPECT_NE(error.find("Next: `bloomery-server --check-rdb " + path + "`"), std::string::npos);
  EXPECT_NE(error.find("--replicaof"), std::string::npos) << error;
}

TEST_F(RecoveryTest, ForeignTypesAreNoDamage) {
  disk_.put(kSnapshot, std::string("REDIS0013\xFE\x00\x1A\x01k", 14));
  const std::string error = error_of(recover_with({"--appendonly", "no"}));
  EXPECT_TRUE(error.ends_with("rdb-foreign-types skip leaves them out")) << error;
}

TEST_F(RecoveryTest, TooFewDatabasesAreNoDamage) {
  disk_.put(kSnapshot, std::string("REDIS0010\xFE\x20\x00\x01k\x01v\xFF\0\0\0\0\0\0\0\0", 25));
  const std::string error = error_of(recover_with({"--appendonly", "no"}));
  EXPECT_TRUE(error.ends_with("database 32 does not exist: `databases` is 16")) << error;
}

TEST_F(RecoveryTest, LoadingCanBeCancelled) {
  put_snapshot(kSnapshot, {"a"});
  put_commands(kFirst, {"b"});
  put_manifest(line_of(kFirst, 1, 'i'));
  is_cancelled_ = true;
  EXPECT_NE(error_of(recover_log()).find("cancelled"), std::string::npos);
  EXPECT_NE(error_of(recover_with({"--appendonly", "no"})).find("cancelled"), std::string::npos);
}

void add_aux(snapshots::Container& container, std::string_view name, std::string_view value) {
  container.u8(persistence::rdb::kAux);
  container.text(name);
  container.text(value);
}

void add_place(snapshots::Container& container) {
  add_aux(container, persistence::rdb::kReplicationIdAux, std::string(40, 'a'));
  add_aux(container, persistence::rdb::kReplicationOffsetAux, "77");
  add_aux(container, persistence::rdb::kStreamDatabaseAux, "3");
}

TEST_F(RecoveryTest, ASnapshotMayBeAheadOfItsPlace) {
  for (const bool is_ahead : {false, true}) {
    snapshots::Container container;
    add_place(container);
    if (is_ahead) add_aux(container, persistence::rdb::kAheadAux, "1");
    container.string_key("a", "v");
    disk_.put(kSnapshot, container.sealed());
    const auto recovered = recover_with({"--appendonly", "no"});
    ASSERT_TRUE(recovered) << recovered.error().message;
    ASSERT_TRUE(recovered->position);
    EXPECT_EQ(recovered->position->is_ahead, is_ahead);
  }
}

// A leader that skips keys of unsupported types loses them, but its replicas still have them. So
// its replicas must not continue from its stream.
TEST_F(RecoveryTest, ALeaderThatLeftKeysOutHasNoPlaceInAStream) {
  snapshots::Container container;
  add_place(container);
  constexpr uint8_t kList = 1;
  container.key(kList, "list");
  container.u8(1);  // number of elements of the list
  container.text("item");
  disk_.put(kSnapshot, container.sealed());
  const auto leader = recover_with({"--appendonly", "no", "--rdb-foreign-types", "skip"});
  ASSERT_TRUE(leader) << leader.error().message;
  EXPECT_EQ(figures_.foreign_keys, 1U);
  EXPECT_FALSE(leader->position);
  const auto replica = recover_with({"--replicaof", "localhost", "1"});
  ASSERT_TRUE(replica) << replica.error().message;
  EXPECT_TRUE(replica->position);
}

TEST_F(RecoveryTest, ASnapshotKnowsItsPlaceInAStream) {
  snapshots::Container container;
  const std::string id(40, 'a');
  add_place(container);
  container.string_key("a", "v");
  disk_.put(kSnapshot, container.sealed());
  const auto recovered = recover_with({"--appendonly", "no"});
  ASSERT_TRUE(recovered) << recovered.error().message;
  ASSERT_TRUE(recovered->position);
  EXPECT_EQ(recovered->position->id, id);
  EXPECT_EQ(recovered->position->offset, 77);
  EXPECT_EQ(recovered->position->stream_database, 3);
  EXPECT_TRUE(recovered->position->is_foreign);
}

TEST_F(RecoveryTest, ASnapshotToBeLoadedAloneMustBeThere) {
  const auto missing = recover_snapshot(parts());
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, is_error("ERR", "snapshot"));
  put_snapshot(kSnapshot, {"a"});
  EXPECT_TRUE(recover_snapshot(parts()));
  EXPECT_TRUE(has("a"));
}

// The append log and the replicas retain expired keys until they receive a DEL.
TEST_F(RecoveryTest, FiguresCountEachLoadAlone) {
  put_snapshot(kSnapshot, {"a", "b"});
  ASSERT_TRUE(recover_with({"--appendonly", "no"}));
  const uint64_t size_bytes = figures_.total_bytes;
  for (int load = 0; load < 2; ++load) {
    figures_.expired_keys = 5;
    figures_.foreign_keys = 5;
    delete_all_keys(keyspace_);
    ASSERT_TRUE(load == 0 ? core::without_value(recover_with({"--appendonly", "no"}))
                          : recover_snapshot(parts()));
    EXPECT_EQ(figures_.total_bytes, size_bytes);
    EXPECT_LE(figures_.loaded_bytes, size_bytes);
    EXPECT_EQ(figures_.loaded_keys, 2U);
    EXPECT_EQ(figures_.expired_keys, 0U);
    EXPECT_EQ(figures_.foreign_keys, 0U);
  }
}

TEST_F(RecoveryTest, ASnapshotLoadedAloneKeepsItsExpiredKeys) {
  snapshots::Container container;
  container.u8(persistence::rdb::kExpiryMilliseconds);
  container.u64(1);
  container.string_key("old", "v");
  disk_.put(kSnapshot, container.sealed());
  EXPECT_TRUE(recover_snapshot(parts()));
  EXPECT_TRUE(has("old"));
}

TEST_F(RecoveryTest, ExpiredKeysAreLeftOutButByAReplica) {
  snapshots::Container container;
  container.u8(persistence::rdb::kExpiryMilliseconds);
  container.u64(1);
  container.string_key("old", "v");
  disk_.put(kSnapshot, container.sealed());
  ASSERT_TRUE(recover_with({"--appendonly", "no"}));
  EXPECT_FALSE(has("old"));
  EXPECT_EQ(figures_.expired_keys, 1U);
  // A replica retains expired keys, because its leader deletes them.
  ASSERT_TRUE(recover_with({"--appendonly", "no", "--replicaof", "localhost", "1"}));
  EXPECT_TRUE(has("old"));
}

}  // namespace
}  // namespace server
