// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_writer.h"
#include "persistence/aof/batch_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "persistence/aof/aof_directory.h"
#include "tests/support/aof_files.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using aof_files::Commands;
using virtual_disk::Unsynced;
using virtual_disk::VirtualDisk;
using Begin = AofWriter::Begin;

class StillClock final : public core::Clock {
 public:
  int64_t wall_ms() const override { return now_ms; }
  int64_t monotonic_us() const override { return now_ms * 1000; }
  int64_t now_ms = 1'700'000'000'000;
};

const std::string kHeader = [] {
  std::string bytes;
  RunningChecksum checksum;
  append_aof_header(bytes, checksum);
  return bytes;
}();

class AofWriterTest : public ::testing::Test {
 protected:
  AofWriterTest() {
    journal_.set_active(true);
    restart_writer();
  }

  void restart_writer() {
    writer_ = std::make_unique<AofWriter>(disk_, journal_, clock_, AofPlace{"./log", names_});
  }
  void open(Begin begin = Begin::kNow) {
    ASSERT_TRUE(writer_->open({}, std::nullopt, 0, begin));
    disk_.restart_count();
  }
  void set(const std::string& value) {
    const std::vector<std::string_view> words = {"SET", "key", value};
    journal_.append(0, words);
  }
  void append(const std::string& value) {
    set(value);
    ASSERT_TRUE(writer_->write());
  }
  core::Result<> rewrite() {
    if (auto ready = writer_->prepare_rotation(); !ready) return ready;
    if (auto rotated = writer_->rotate(); !rotated) return rotated;
    disk_.put("new-base", "the base");
    return writer_->replace_base("new-base", AofBaseFormat::kRdb);
  }

  std::string bytes(int sequence) const {
    return disk_.content("./log/" + names_.incremental(static_cast<uint64_t>(sequence)))
        .value_or("missing");
  }
  AofManifest manifest_on_disk() {
    auto loaded = load_manifest(disk_, "./log/" + names_.manifest());
    return loaded ? *loaded : AofManifest();
  }
  // Returns the values that are set by the file's commands. Appends "damaged" or "torn" if the file
  // is damaged or torn.
  std::vector<std::string> values(int sequence) const {
    std::vector<std::string> found;
    const auto reading = aof_files::read(bytes(sequence));
    for (const auto& command : reading.commands) {
      if (command[0] == "SET") found.push_back(command[2]);
    }
    if (reading.scan.condition == AofScan::Condition::kTorn) found.emplace_back("torn");
    if (reading.scan.condition == AofScan::Condition::kDamaged) found.emplace_back("damaged");
    return found;
  }
  using Values = std::vector<std::string>;

  VirtualDisk disk_;
  Journal journal_;
  StillClock clock_;
  const AofNames names_{"a.aof"};
  std::unique_ptr<AofWriter> writer_;
};

TEST_F(AofWriterTest, WithoutATailANewFileIsListed) {
  open();
  EXPECT_TRUE(writer_->is_open());
  EXPECT_FALSE(writer_->needs_base());
  EXPECT_EQ(bytes(1), kHeader);
  ASSERT_EQ(manifest_on_disk().incrementals().size(), 1);
  EXPECT_EQ(manifest_on_disk().incrementals()[0].name, "a.aof.1.incr.aof");
  EXPECT_EQ(writer_->size_bytes(), kHeader.size());
}

TEST_F(AofWriterTest, WithATailTheFileIsContinued) {
  open();
  append("a");
  const auto scan = scan_aof(disk_, "./log/a.aof.1.incr.aof").value();
  restart_writer();
  const AofWriter::Tail tail{scan.sound_bytes, scan.checksum};
  ASSERT_TRUE(writer_->open(manifest_on_disk(), tail, scan.size_bytes, Begin::kNow));
  append("b");
  EXPECT_EQ(values(1), (Values{"a", "b"}));
  EXPECT_EQ(bytes(2), "missing");
  EXPECT_EQ(writer_->size_bytes(), bytes(1).size());
}

TEST_F(AofWriterTest, CountsTheFilesBeforeTheNewOne) {
  AofManifest manifest;
  manifest.add_incremental(names_);
  disk_.put("./log/a.aof.1.incr.aof", std::string(100, '#'));
  ASSERT_TRUE(writer_->open(manifest, std::nullopt, 100, Begin::kNow));
  EXPECT_EQ(writer_->size_bytes(), 100 + kHeader.size());
  append("a");
  EXPECT_EQ(writer_->size_bytes(), 100 + bytes(2).size());
  EXPECT_EQ(writer_->base_size_bytes(), 100 + kHeader.size());
}

TEST_F(AofWriterTest, EndsEachBatchInAChecksumLine) {
  open();
  set("a");
  set("b");
  ASSERT_TRUE(writer_->write());
  append("c");
  EXPECT_EQ(values(1), (Values{"a", "b", "c"}));
  const auto scan = aof_files::read(bytes(1)).scan;
  EXPECT_TRUE(scan.has_effect_semantics);
  EXPECT_EQ(scan.checksum_count, 3);  // checksum lines of the header and of two batches
  EXPECT_EQ(scan.checksum.size_bytes(), bytes(1).size());
  EXPECT_EQ(writer_->written_offset(), journal_.end_offset());
  EXPECT_LT(writer_->synced_offset(), journal_.end_offset());
}

TEST_F(AofWriterTest, AnEmptyJournalWritesNothing) {
  open();
  append("a");
  const std::string before = bytes(1);
  ASSERT_TRUE(writer_->write());
  EXPECT_EQ(bytes(1), before);
}

TEST_F(AofWriterTest, FailedWriteIsTruncatedAndRetried) {
  open();
  append("a");
  const std::string before = bytes(1);
  set("b");
  disk_.restart_count();
  disk_.fail_operation(1);
  EXPECT_FALSE(writer_->write());
  EXPECT_EQ(bytes(1), before);
  EXPECT_GT(writer_->buffered_bytes(), 0);
  EXPECT_LT(writer_->written_offset(), journal_.end_offset());
  set("c");
  ASSERT_TRUE(writer_->write());
  EXPECT_EQ(values(1), (Values{"a", "b", "c"}));
  EXPECT_EQ(writer_->buffered_bytes(), 0);
  EXPECT_EQ(writer_->size_bytes(), bytes(1).size());
}

TEST_F(AofWriterTest, BatchIsWrittenWhenTheDiskHasRoomAgain) {
  open();
  append("a");
  set(std::string(100, 'b'));
  disk_.set_free_bytes(50);
  EXPECT_FALSE(writer_->write());
  EXPECT_FALSE(writer_->write());
  EXPECT_EQ(values(1), Values{"a"});
  disk_.set_free_bytes(virtual_disk::kNever);
  ASSERT_TRUE(writer_->write());
  EXPECT_EQ(values(1), (Values{"a", std::string(100, 'b')}));
}

TEST_F(AofWriterTest, FailedTruncateIsRetriedBeforeTheNextWrite) {
  open();
  append("a");
  const std::string before = bytes(1);
  set("b");
  disk_.restart_count();
  disk_.fail_from_operation(1);
  EXPECT_FALSE(writer_->write());
  EXPECT_GT(bytes(1).size(), before.size()) << "half of the batch is in the file";
  const std::string torn = bytes(1);
  EXPECT_FALSE(writer_->write());
  EXPECT_EQ(bytes(1), torn) << "no bytes may follow half a batch";
  disk_.restart_count();
  ASSERT_TRUE(writer_->write());
  EXPECT_EQ(values(1), (Values{"a", "b"}));
}

TEST_F(AofWriterTest, SyncCoversAllWrittenBytes) {
  open();
  append("a");
  const uint64_t written = journal_.end_offset();
  set("b");
  ASSERT_TRUE(writer_->sync());
  EXPECT_EQ(writer_->synced_offset(), written);
  disk_.cut_power(Unsynced::kLost);
  EXPECT_EQ(values(1), Values{"a"});
}

TEST_F(AofWriterTest, NoSyncCountsAfterAFailureUntilANewBase) {
  open();
  append("a");
  disk_.restart_count();
  disk_.fail_operation(1);
  const uint64_t synced = writer_->synced_offset();
  EXPECT_FALSE(writer_->sync());
  EXPECT_TRUE(writer_->has_lost_sync());
  append("b");
  EXPECT_FALSE(writer_->sync()) << "the disk would report success without the bytes";
  EXPECT_EQ(writer_->synced_offset(), synced);

  ASSERT_TRUE(rewrite());
  EXPECT_FALSE(writer_->has_lost_sync());
  append("c");
  ASSERT_TRUE(writer_->sync());
  EXPECT_EQ(writer_->synced_offset(), journal_.end_offset());
  EXPECT_EQ(values(2), Values{"c"});
}

TEST_F(AofWriterTest, FailedSyncOfTheNewFileOutlivesTheBase) {
  open();
  ASSERT_TRUE(writer_->prepare_rotation());
  ASSERT_TRUE(writer_->rotate());
  ASSERT_TRUE(writer_->sync());  // syncs the file before the rotation
  append("a");
  disk_.restart_count();
  disk_.fail_operation(1);
  EXPECT_FALSE(writer_->sync());
  disk_.put("new-base", "the base");
  ASSERT_TRUE(writer_->replace_base("new-base", AofBaseFormat::kRdb));
  EXPECT_TRUE(writer_->has_lost_sync());
  EXPECT_FALSE(writer_->sync());
  ASSERT_TRUE(rewrite());
  EXPECT_TRUE(writer_->sync());
}

TEST_F(AofWriterTest, NewFileStaysEmptyUntilTheOldIsSynced) {
  open();
  append("a");
  ASSERT_TRUE(writer_->prepare_rotation());
  set("b");
  ASSERT_TRUE(writer_->rotate());
  EXPECT_TRUE(writer_->awaits_sync());
  EXPECT_EQ(values(1), (Values{"a", "b"})) << "the values of the next base";
  set("c");
  EXPECT_TRUE(writer_->write());
  EXPECT_EQ(bytes(2), kHeader);
  EXPECT_LT(writer_->written_offset(), journal_.end_offset());
  ASSERT_TRUE(writer_->sync());
  EXPECT_FALSE(writer_->awaits_sync());
  ASSERT_TRUE(writer_->write());
  EXPECT_EQ(values(2), Values{"c"});
}

TEST_F(AofWriterTest, PreparingARotationSyncsTheFileBefore) {
  open();
  ASSERT_TRUE(writer_->prepare_rotation());
  ASSERT_TRUE(writer_->rotate());
  ASSERT_TRUE(writer_->prepare_rotation());
  EXPECT_FALSE(writer_->awaits_sync());
  EXPECT_TRUE(writer_->rotate());
}

TEST_F(AofWriterTest, FileIsListedBeforeItReceivesCommands) {
  open();
  ASSERT_TRUE(writer_->prepare_rotation());
  disk_.cut_power(Unsynced::kLost);
  const AofManifest manifest = manifest_on_disk();
  ASSERT_EQ(manifest.incrementals().size(), 2);
  EXPECT_EQ(manifest.incrementals()[1].name, "a.aof.2.incr.aof");
  EXPECT_EQ(bytes(2), kHeader) << "synced";
}

TEST_F(AofWriterTest, FileAfterARotationStatesItsDatabase) {
  open();
  const std::vector<std::string_view> words = {"SET", "key", "a"};
  journal_.append(3, words);
  ASSERT_TRUE(writer_->write());
  ASSERT_TRUE(rewrite());
  journal_.append(3, words);
  ASSERT_TRUE(writer_->write());
  const Commands expected = {{"SELECT", "3"}, {"SET", "key", "a"}};
  EXPECT_EQ(aof_files::read(bytes(2)).commands, expected);
}

TEST_F(AofWriterTest, ReplacedFilesAreRemovedAndSizesUpdated) {
  open();
  append("a");
  ASSERT_TRUE(rewrite());
  EXPECT_EQ(bytes(1), "missing");
  EXPECT_EQ(disk_.content("./log/a.aof.1.base.rdb"), "the base");
  const AofManifest manifest = manifest_on_disk();
  EXPECT_EQ(manifest.base()->name, "a.aof.1.base.rdb");
  EXPECT_EQ(manifest.incrementals().size(), 1);
  EXPECT_TRUE(manifest.history().empty());
  EXPECT_EQ(writer_->size_bytes(), 8 + kHeader.size());
  EXPECT_EQ(writer_->base_size_bytes(), 8 + kHeader.size());
}

TEST_F(AofWriterTest, WithBaseNoFileIsListedBeforeTheBase) {
  open(Begin::kWithBase);
  EXPECT_TRUE(writer_->needs_base());
  append("a");
  EXPECT_FALSE(manifest_on_disk().names_data());
  ASSERT_TRUE(writer_->prepare_rotation());
  EXPECT_FALSE(manifest_on_disk().names_data());
  ASSERT_TRUE(writer_->rotate());
  ASSERT_TRUE(writer_->sync());
  append("b");
  disk_.put("new-base", "the base");
  ASSERT_TRUE(writer_->replace_base("new-base", AofBaseFormat::kRdb));
  EXPECT_FALSE(writer_->needs_base());
  const AofManifest manifest = manifest_on_disk();
  ASSERT_TRUE(manifest.base());
  ASSERT_EQ(manifest.incrementals().size(), 1);
  EXPECT_EQ(values(2), Values{"b"});
  EXPECT_EQ(manifest.incrementals()[0].name, "a.aof.2.incr.aof");
}

// The log is being switched on. Until its base exists, a server that starts finds the old data.
TEST_F(AofWriterTest, CrashBeforeTheFirstBaseAllowsAStart) {
  for (const Unsynced unsynced : {Unsynced::kLost, Unsynced::kKept}) {
    disk_.cut_power(unsynced);
    restart_writer();
    AofDirectory directory(disk_, ".", "log", names_);
    auto before = directory.find();
    ASSERT_TRUE(before) << before.error().message;
    ASSERT_TRUE(writer_->open(before->manifest, std::nullopt, 0, Begin::kWithBase));
    append("a");
    ASSERT_TRUE(writer_->sync());
  }
  disk_.cut_power(Unsynced::kKept);
  AofDirectory directory(disk_, ".", "log", names_);
  const auto start = directory.find();
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_FALSE(start->manifest.names_data());
}

TEST_F(AofWriterTest, TimestampPrecedesFirstBatchOfASecond) {
  open();
  writer_->lines().set_timestamps(true);
  append("a");
  append("b");
  EXPECT_EQ(aof_files::read(bytes(1)).scan.annotation_count, 2 + 2 + 1);
  clock_.now_ms += 1000;
  append("c");
  EXPECT_NE(bytes(1).find("#TS:1700000000\r\n"), std::string::npos);
  EXPECT_NE(bytes(1).find("#TS:1700000001\r\n"), std::string::npos);
  EXPECT_EQ(values(1), (Values{"a", "b", "c"}));
}

TEST_F(AofWriterTest, EachFileHasATimestamp) {
  open();
  writer_->lines().set_timestamps(true);
  append("a");
  ASSERT_TRUE(rewrite());
  append("c");
  EXPECT_NE(bytes(2).find("#TS:1700000000\r\n"), std::string::npos);
}

TEST_F(AofWriterTest, PositionLineBelongsToTheLastCommand) {
  int64_t offset = 100;
  writer_->lines().set_position_source([&](uint64_t journal_end) {
    std::string line;
    EXPECT_EQ(journal_end, journal_.end_offset());
    if (offset > 0) append_position_line(line, {0, std::string(40, 'b'), offset});
    return line;
  });
  open();
  append("a");
  EXPECT_EQ(aof_files::read(bytes(1)).scan.position->offset, 100);
  offset = 114;  // advances the stream position without appending commands
  ASSERT_TRUE(writer_->write_position());
  EXPECT_EQ(aof_files::read(bytes(1)).scan.position->offset, 114);
  const size_t size = bytes(1).size();
  ASSERT_TRUE(writer_->write_position());
  EXPECT_EQ(bytes(1).size(), size);
  offset = 0;  // 0: the position is unknown
  append("b");
  EXPECT_FALSE(aof_files::read(bytes(1)).scan.position);
  EXPECT_EQ(values(1), (Values{"a", "b"}));
}

// A command that was pending when the log was switched off must not become part of the next log.
TEST_F(AofWriterTest, CloseDiscardsFilesAndPendingCommands) {
  open();
  append("a");
  writer_->close();
  EXPECT_FALSE(writer_->is_open());
  set("b");
  EXPECT_FALSE(writer_->write());
  EXPECT_TRUE(writer_->sync());
  EXPECT_FALSE(writer_->prepare_rotation());
  EXPECT_EQ(values(1), Values{"a"}) << "a closed log overwrites no file";
  writer_->close();
  ASSERT_TRUE(writer_->open(manifest_on_disk(), std::nullopt, bytes(1).size(), Begin::kNow));
  append("c");
  EXPECT_EQ(values(2), Values{"c"});
}

TEST_F(AofWriterTest, StartSyncsFilesOfAKilledProcess) {
  open();
  append("a");
  const auto scan = scan_aof(disk_, "./log/a.aof.1.incr.aof").value();
  restart_writer();
  const AofWriter::Tail tail{scan.sound_bytes, scan.checksum};
  ASSERT_TRUE(writer_->open(manifest_on_disk(), tail, scan.size_bytes, Begin::kNow));
  disk_.cut_power(Unsynced::kLost);
  EXPECT_EQ(values(1), Values{"a"});
}

// Returns what a server finds at its start: the values of the base and of all incremental files.
std::vector<std::string> found_after_crash(VirtualDisk& disk, const AofNames& names) {
  AofDirectory directory(disk, ".", "log", names);
  auto start = directory.find();
  if (!start) return {"refused: " + start.error().message};
  std::vector<std::string> found;
  for (const auto& file : start->files) {
    const std::string bytes = *disk.content(file.path);
    if (file.is_base) {
      for (const char value : bytes) found.emplace_back(1, value);
      continue;
    }
    const auto reading = aof_files::read(bytes);
    for (const auto& command : reading.commands) {
      if (command[0] == "SET") found.push_back(command[2]);
    }
    if (reading.scan.condition == AofScan::Condition::kDamaged) found.emplace_back("damaged");
  }
  return found;
}

// Each run writes a log with two rewrites. One disk operation fails, alone or with all later ones,
// and then the power is cut. The values are a, b, c …; a base contains all values set before its
// rotation.
TEST_F(AofWriterTest, SyncedDataSurviveAnyFailure) {
  for (const bool all_behind : {false, true}) {
    for (const Unsynced unsynced : {Unsynced::kLost, Unsynced::kKept, Unsynced::kPartial}) {
      bool has_failed = true;
      for (uint64_t number = 1; has_failed; ++number) {
        VirtualDisk disk(number);
        Journal journal;
        AofWriter writer(disk, journal, clock_, {"./log", names_});
        if (all_behind) {
          disk.fail_from_operation(number);
        } else {
          disk.fail_operation(number);
        }
        if (!writer.open({}, std::nullopt, 0, Begin::kNow)) continue;
        journal.set_active(true);
        std::string values;
        size_t safe = 0;
        const auto live = [&] {
          const std::string value(1, static_cast<char>('a' + values.size()));
          const std::vector<std::string_view> words = {"SET", "key", value};
          values += value;
          journal.append(0, words);
          (void)writer.write();
          if (writer.sync() && writer.synced_offset() == journal.end_offset()) safe = values.size();
        };
        for (int round = 0; round < 2; ++round) {
          live();
          if (writer.prepare_rotation() && writer.rotate()) {
            disk.put("new-base", values);
            live();
            live();
            (void)writer.replace_base("new-base", AofBaseFormat::kRdb);
          }
          live();
        }
        has_failed = disk.operation_count() >= number;
        disk.cut_power(unsynced);
        const auto found = found_after_crash(disk, names_);
        // A failed sync may leave a hole before later data. Neither the lost nor the later data
        // were acknowledged.
        if (writer.has_lost_sync() && unsynced != Unsynced::kLost && !found.empty() &&
            found.back() == "damaged") {
          continue;
        }
        ASSERT_GE(found.size(), safe) << "operation " << number;
        ASSERT_LE(found.size(), values.size()) << "operation " << number;
        for (size_t i = 0; i < found.size(); ++i) {
          ASSERT_EQ(found[i], values.substr(i, 1)) << "operation " << number;
        }
      }
    }
  }
}

}  // namespace
}  // namespace persistence
