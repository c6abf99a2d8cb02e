// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_writer.h"

#include <gtest/gtest.h>

#include <functional>

#include "persistence/aof/aof_directory.h"
#include "persistence/aof/aof_reader.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using virtual_disk::Unsynced;
using virtual_disk::VirtualDisk;

// A disk that calls a function during the next sync of a file.
class SlowDisk final : public FileSystem {
 public:
  explicit SlowDisk(VirtualDisk& disk) : disk_(disk) {}

  std::function<void()> during_sync;
  bool refuses_removal = false;

  core::Result<std::unique_ptr<AppendFile>> open_append(const std::string& path,
                                                        OpenMode mode) override {
    auto file = disk_.open_append(path, mode);
    if (!file) return file.error();
    return std::unique_ptr<AppendFile>(std::make_unique<File>(*this, std::move(*file)));
  }
  core::Result<std::unique_ptr<InputFile>> open_input(const std::string& path) override {
    return disk_.open_input(path);
  }
  bool exists(const std::string& path) override { return disk_.exists(path); }
  core::Result<uint64_t> size_bytes(const std::string& path) override {
    return disk_.size_bytes(path);
  }
  core::Result<> rename(const std::string& from, const std::string& to) override {
    return disk_.rename(from, to);
  }
  core::Result<> remove(const std::string& path) override {
    if (refuses_removal) return core::Error{"ERR can't remove " + path};
    return disk_.remove(path);
  }
  core::Result<std::vector<std::string>> list(const std::string& directory) override {
    return disk_.list(directory);
  }
  core::Result<> make_directory(const std::string& path) override {
    return disk_.make_directory(path);
  }
  core::Result<> sync_directory(const std::string& path) override {
    return disk_.sync_directory(path);
  }

 private:
  class File final : public AppendFile {
   public:
    File(SlowDisk& disk, std::unique_ptr<AppendFile> file) : disk_(disk), file_(std::move(file)) {}
    core::Result<> write(std::string_view bytes) override { return file_->write(bytes); }
    core::Result<> sync() override {
      auto synced = file_->sync();
      if (const auto act = std::exchange(disk_.during_sync, nullptr)) act();
      return synced;
    }
    core::Result<> truncate(uint64_t size_bytes) override { return file_->truncate(size_bytes); }

   private:
    SlowDisk& disk_;
    std::unique_ptr<AppendFile> file_;
  };

  VirtualDisk& disk_;
};

class AofWriterSyncTest : public testing::Test {
 protected:
  AofWriterSyncTest() {
    disk_.add_directory("d");
    EXPECT_TRUE(disk_.sync_directory("."));
    EXPECT_TRUE(writer_.open(AofManifest(), std::nullopt, 0, AofWriter::Begin::kNow));
    EXPECT_TRUE(disk_.sync_directory("d"));
    journal_.set_active(true);
  }

  void set(std::string_view key) {
    journal_.append(0, std::array<std::string_view, 3>{"SET", key, "1"});
  }
  // Writes a command. The sync of its bytes fails.
  void lose_sync() {
    set("lost");
    ASSERT_TRUE(writer_.write());
    disk_.restart_count();
    disk_.fail_operation(1);
    ASSERT_FALSE(writer_.sync());
  }
  void rotate() {
    ASSERT_TRUE(writer_.prepare_rotation());
    ASSERT_TRUE(writer_.rotate());
  }
  void replace_base() {
    const auto base = slow_disk_.open_append("d/new-base", OpenMode::kCreate);
    ASSERT_TRUE(base);
    ASSERT_TRUE((*base)->write("REDIS"));
    ASSERT_TRUE((*base)->sync());
    ASSERT_TRUE(writer_.replace_base("d/new-base", AofBaseFormat::kRdb));
  }
  // Cuts the power. Returns the keys that the remaining incremental files set.
  std::vector<std::string> keys_after_power_cut() {
    disk_.cut_power(Unsynced::kLost);
    std::vector<std::string> keys;
    const auto start = AofDirectory(disk_, "d", "logs", AofNames("a")).find();
    if (!start) return {start.error().message};
    for (const auto& file : start->files) {
      if (file.is_base) continue;
      const auto scan = scan_aof(disk_, file.path);
      EXPECT_EQ(scan->condition, AofScan::Condition::kWhole) << scan->reason;
      EXPECT_TRUE(replay_aof(disk_, file.path, *scan, [&](const AofCommand& command) {
        if (command.arguments[0] == "SET") keys.emplace_back(command.arguments[1]);
        return core::Result<>();
      }));
    }
    return keys;
  }

  using Keys = std::vector<std::string>;
  VirtualDisk disk_;
  SlowDisk slow_disk_{disk_};
  Journal journal_;
  core::SystemClock clock_;
  AofWriter writer_{slow_disk_, journal_, clock_, {"d/logs", AofNames("a")}};
};

TEST_F(AofWriterSyncTest, WritesDuringASyncNeedAnotherSync) {
  // The rotation is prepared before the tested sync, as in the server: prepare_rotation() also
  // syncs, and only one sync runs at a time.
  ASSERT_TRUE(writer_.prepare_rotation());
  set("early");
  ASSERT_TRUE(writer_.write());
  slow_disk_.during_sync = [&] {
    set("late");
    ASSERT_TRUE(writer_.rotate());
  };
  ASSERT_TRUE(writer_.sync());
  EXPECT_TRUE(writer_.awaits_sync());
  EXPECT_LT(writer_.synced_offset(), journal_.end_offset());
  set("next");
  ASSERT_TRUE(writer_.write());
  EXPECT_LT(writer_.written_offset(), journal_.end_offset()) << "the previous file is not synced";
  ASSERT_TRUE(writer_.sync());
  ASSERT_TRUE(writer_.write());
  ASSERT_TRUE(writer_.sync());
  EXPECT_EQ(writer_.synced_offset(), journal_.end_offset());
  EXPECT_EQ(keys_after_power_cut(), (Keys{"early", "late", "next"}));
}

TEST_F(AofWriterSyncTest, NewBaseRecoversFromAFailedSync) {
  lose_sync();
  ASSERT_FALSE(writer_.sync()) << "a later sync must not succeed";
  rotate();
  set("after");
  ASSERT_TRUE(writer_.write());
  replace_base();
  EXPECT_FALSE(writer_.has_lost_sync());
  ASSERT_TRUE(writer_.write());
  ASSERT_TRUE(writer_.sync());
  EXPECT_EQ(keys_after_power_cut(), Keys{"after"});
}

// A disk may fail for one file only.
TEST_F(AofWriterSyncTest, RotationLeavesAFileWithALostSyncAlone) {
  lose_sync();
  set("pending");
  ASSERT_TRUE(writer_.prepare_rotation());
  disk_.restart_count();
  ASSERT_TRUE(writer_.rotate());
  EXPECT_EQ(disk_.operation_count(), 0U);
  EXPECT_LT(writer_.written_offset(), journal_.end_offset());
  replace_base();
  EXPECT_EQ(writer_.written_offset(), journal_.end_offset()) << "it is in the base";
  set("after");
  ASSERT_TRUE(writer_.write());
  ASSERT_TRUE(writer_.sync());
  EXPECT_EQ(keys_after_power_cut(), Keys{"after"});
}

// The log's thread may be syncing while the log is switched off.
TEST_F(AofWriterSyncTest, FailedSyncOfAClosedLogIsIgnored) {
  set("key");
  ASSERT_TRUE(writer_.write());
  disk_.restart_count();
  disk_.fail_operation(1);
  slow_disk_.during_sync = [this] {
    journal_.set_active(false);
    writer_.close();
  };
  EXPECT_TRUE(writer_.sync());
  EXPECT_FALSE(writer_.has_lost_sync());
  ASSERT_TRUE(writer_.open(AofManifest(), std::nullopt, 0, AofWriter::Begin::kNow));
  EXPECT_TRUE(writer_.sync());
}

TEST_F(AofWriterSyncTest, RewriteCanBeRetriedAfterAFailedSync) {
  set("lost");
  ASSERT_TRUE(writer_.write());
  disk_.restart_count();
  disk_.fail_operation(1);
  ASSERT_FALSE(writer_.sync());
  // A rewrite rotates the log, and then its child process fails.
  rotate();
  set("in the base");
  ASSERT_TRUE(writer_.write());
  rotate();
  set("after");
  ASSERT_TRUE(writer_.write());
  EXPECT_LT(writer_.written_offset(), journal_.end_offset());
  replace_base();
  ASSERT_TRUE(writer_.write());
  ASSERT_TRUE(writer_.sync());
  EXPECT_EQ(writer_.synced_offset(), journal_.end_offset());
  EXPECT_EQ(keys_after_power_cut(), Keys{"after"});
}

TEST_F(AofWriterSyncTest, UndeletableHistoryStaysInTheManifest) {
  rotate();
  replace_base();
  slow_disk_.refuses_removal = true;
  rotate();
  replace_base();
  const auto named = [&] {
    return load_manifest(disk_, "d/logs/a.manifest").value().history().size();
  };
  EXPECT_EQ(named(), 2U) << "the first base and the file after it";
  EXPECT_TRUE(disk_.exists("d/logs/a.1.base.rdb"));
  slow_disk_.refuses_removal = false;
  rotate();
  replace_base();
  EXPECT_EQ(named(), 0U);
  EXPECT_FALSE(disk_.exists("d/logs/a.1.base.rdb"));
}

}  // namespace
}  // namespace persistence
