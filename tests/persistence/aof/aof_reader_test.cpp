// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "persistence/aof/aof_lexer.h"
#include "tests/support/aof_files.h"
#include "tests/support/vectors.h"

namespace persistence {
namespace {

// Returns the path in the form that messages use.
std::string whole(const std::string& path) {
  return std::filesystem::current_path().string() + '/' + path;
}

using aof_files::Command;
using aof_files::Commands;
using aof_files::encode;
using aof_files::OwnFile;
using aof_files::read;
using aof_files::Reading;
using ::testing::HasSubstr;
using Condition = AofScan::Condition;

TEST(AofReaderTest, EmptyFileHasNoCommands) {
  const Reading reading = read("");
  EXPECT_EQ(reading.scan.condition, Condition::kWhole);
  EXPECT_EQ(reading.scan.sound_bytes, 0U);
  EXPECT_FALSE(reading.scan.has_effect_semantics);
  EXPECT_TRUE(reading.commands.empty());
}

TEST(AofReaderTest, ForeignFileIsReadWithItsAnnotations) {
  const Reading reading =
      read("#TS:1700000001\r\n" + aof_files::kSet + "# a remark\n#TS:1700000002\r\n" +
           encode({"multi"}) + aof_files::kSet + aof_files::kSet + encode({"Exec"}));
  EXPECT_EQ(reading.scan.condition, Condition::kWhole);
  EXPECT_FALSE(reading.scan.has_effect_semantics);
  EXPECT_EQ(reading.scan.command_count, 3U);
  EXPECT_EQ(reading.scan.transaction_count, 1U);
  EXPECT_EQ(reading.scan.annotation_count, 3U);
  EXPECT_EQ(reading.commands, Commands(3, {"SET", "k", "v"}));
}

TEST(AofReaderTest, FileOfOursIsRecognized) {
  OwnFile file;
  file.add({"SET", "k", "v"});
  file.add_transaction({{"DEL", "a"}, {"DEL", "b"}});
  file.end_batch();
  const Reading reading = read(file.bytes());
  EXPECT_EQ(reading.scan.condition, Condition::kWhole);
  EXPECT_TRUE(reading.scan.has_effect_semantics);
  EXPECT_EQ(reading.scan.checksum_count, 2U);
  EXPECT_EQ(reading.scan.sound_bytes, file.bytes().size());
  EXPECT_EQ(reading.commands, file.commands());
}

TEST(AofReaderTest, UnverifiedCommandsAreCounted) {
  OwnFile file;
  file.add({"SET", "k", "v"});
  file.end_batch();
  EXPECT_EQ(read(file.bytes()).scan.unverified_count, 0U);
  const size_t verified = file.bytes().size();
  file.add({"SET", "k", "w"});
  file.add_transaction({{"DEL", "a"}, {"DEL", "b"}});
  file.end_batch();
  const std::string whole = file.bytes();
  EXPECT_EQ(read(whole).scan.unverified_count, 0U);
  const size_t line = whole.rfind('#');
  ASSERT_GT(line, verified);
  std::string remark = whole;
  remark[line + 1] ^= 1;
  std::string malformed = whole;
  malformed[whole.size() - 3] = 'x';
  for (const std::string& bytes : {whole.substr(0, line), remark, malformed}) {
    const Reading reading = read(bytes);
    EXPECT_EQ(reading.commands, file.commands());
    EXPECT_EQ(reading.scan.unverified_count, 3U);
  }
}

TEST(AofReaderTest, CommandsHaveOffsetAndTransaction) {
  virtual_disk::VirtualDisk disk;
  disk.put("f", aof_files::kSet + encode({"MULTI"}) + aof_files::kSet + encode({"EXEC"}) +
                    aof_files::kSet);
  const auto scan = scan_aof(disk, "f").value();
  std::vector<uint64_t> seen;
  ASSERT_TRUE(replay_aof(disk, "f", scan, [&](const AofCommand& command) -> core::Result<> {
    seen.push_back(command.offset);
    return {};
  }));
  const uint64_t second = aof_files::kSet.size() + encode({"MULTI"}).size();
  const uint64_t third = second + aof_files::kSet.size() + encode({"EXEC"}).size();
  EXPECT_EQ(seen, (std::vector<uint64_t>{0, second, third}));
}

TEST(AofReaderTest, HandlersErrorIncludesTheOffset) {
  virtual_disk::VirtualDisk disk;
  disk.put("f", aof_files::kSet + encode({"NONSENSE"}));
  const auto scan = scan_aof(disk, "f").value();
  const auto refuse = [](const AofCommand& command) -> core::Result<> {
    if (command.arguments[0] == "NONSENSE") return core::Error{"unknown command"};
    return {};
  };
  EXPECT_EQ(replay_aof(disk, "f", scan, refuse).error().message,
            "ERR append log '" + whole("f") + "', offset 27: unknown command");
}

TEST(AofReaderTest, PreambleIsSkippedButCounted) {
  const std::string preamble(700'000, 'R');
  OwnFile file;
  virtual_disk::VirtualDisk disk;
  disk.put("f", preamble + aof_files::kSet);
  const auto scan = scan_aof(disk, "f", preamble.size()).value();
  EXPECT_EQ(scan.command_count, 1U);
  EXPECT_EQ(scan.sound_bytes, preamble.size() + aof_files::kSet.size());
  EXPECT_EQ(scan.checksum.size_bytes(), scan.sound_bytes);
  int count = 0;
  ASSERT_TRUE(replay_aof(disk, "f", scan, [&](const AofCommand& command) -> core::Result<> {
    EXPECT_EQ(command.offset, preamble.size());
    ++count;
    return {};
  }));
  EXPECT_EQ(count, 1);
}

TEST(AofReaderTest, SnapshotIsRecognizedByItsMagic) {
  virtual_disk::VirtualDisk disk;
  for (const auto& [bytes, expected] :
       std::vector<std::pair<std::string, bool>>{{"REDIS0010", true},
                                                 {"VALKEY080", true},
                                                 {"VALKE", false},
                                                 {"REDI", false},
                                                 {"", false},
                                                 {aof_files::kSet, false}}) {
    disk.put("f", bytes);
    EXPECT_EQ(begins_with_snapshot(disk, "f").value(), expected) << bytes;
  }
}

TEST(AofReaderTest, LongCommandsCrossBuffers) {
  OwnFile file;
  file.add({"SET", "long", std::string(3'000'000, 'x')});
  Command many{"MADD"};
  for (int i = 0; i < 100'000; ++i) many.push_back(std::to_string(i));
  file.add(many);
  file.end_batch();
  EXPECT_EQ(read(file.bytes()).commands, file.commands());
}

TEST(AofReaderTest, AnnouncedSizesAreBounded) {
  // The announced sizes exceed the machine's memory; nothing may be allocated for them.
  EXPECT_EQ(read("*2147483647\r\n$1\r\na\r\n").scan.condition, Condition::kTorn);
  EXPECT_EQ(read("*1\r\n$68719476736\r\na\r\n").scan.condition, Condition::kTorn);
  EXPECT_THAT(read("*2147483648\r\n").scan.reason, HasSubstr(aof_fault::kTooManyArguments));
  EXPECT_THAT(read("*1\r\n$68719476737\r\n").scan.reason, HasSubstr(aof_fault::kLongArgument));
}

TEST(AofReaderTest, WrongBytesOfAForeignFileAreDamage) {
  struct Case {
    std::string bytes;
    uint64_t offset;
    std::string_view reason;
  };
  for (const Case& one : std::vector<Case>{
           {"x", 0, aof_fault::kNoItem},
           {"PING\r\n", 0, aof_fault::kNoItem},
           {"*x\r\n", 1, aof_fault::kNoNumber},
           {"*-1\r\n", 1, aof_fault::kNoNumber},
           {"*0\r\n", 1, aof_fault::kNoArguments},
           {"*1\n$1\r\na\r\n", 2, aof_fault::kNoLineEnd},
           {"*1\r\r", 3, aof_fault::kNoLineEnd},
           {"*1\r\n+1\r\n", 4, aof_fault::kNoArgument},
           {"*1\r\n$-1\r\n", 5, aof_fault::kNoNumber},
           {"*1\r\n$1\r\nabc\r\n", 9, aof_fault::kNoLineEnd},
           {"*1\r\n$0000000000000000001\r\na\r\n", 23, aof_fault::kLongNumber},
           {"#" + std::string(1022, 'x') + "\n", 1023, aof_fault::kOpenAnnotation},
           {encode({"EXEC"}), 0, aof_fault::kExecWithoutMulti},
           {encode({"MULTI"}) + encode({"MULTI"}), 15, aof_fault::kNestedMulti},
           {"#bloomery-ver:2\r\n", 0, aof_fault::kLaterVersion},
           {"#bloomery-ver:\r\n", 0, aof_fault::kMalformedAnnotation},
           {"#bloomery-ver:1\n", 0, aof_fault::kMalformedAnnotation},
           {checksum_text(1) + "\r\n", 0, aof_fault::kWrongChecksum},
       }) {
    const Reading reading = read(aof_files::kSet + one.bytes + aof_files::kSet);
    EXPECT_EQ(reading.scan.condition, Condition::kDamaged) << one.bytes;
    EXPECT_EQ(reading.scan.reason, one.reason) << one.bytes;
    EXPECT_EQ(reading.scan.fault_offset, aof_files::kSet.size() + one.offset) << one.bytes;
    EXPECT_TRUE(reading.commands.empty());
  }
  AofScan scan;
  scan.condition = Condition::kDamaged;
  scan.fault_offset = 9;
  scan.reason = "why";
  EXPECT_EQ(aof_error("dir/f", scan).message, "ERR append log '" + whole("dir/f") +
                                                  "', offset 9: damaged: why (Bad file format "
                                                  "reading the append only file)");
}

TEST(AofReaderTest, ChangeBetweenThePassesIsDetected) {
  OwnFile file;
  file.add({"SET", "k", "v"});
  file.end_batch();
  virtual_disk::VirtualDisk disk;
  disk.put("f", file.bytes());
  const auto scan = scan_aof(disk, "f").value();
  const auto accept = [](const AofCommand&) -> core::Result<> { return {}; };
  std::string other = file.bytes();
  other[other.find("\r\nv") + 2] = 'w';
  for (const std::string& bytes : {other, file.bytes().substr(0, 60), std::string(200, '\0')}) {
    disk.put("f", bytes);
    EXPECT_THAT(replay_aof(disk, "f", scan, accept).error().message,
                HasSubstr("changed while it was read"));
  }
}

TEST(AofReaderTest, FailedReadIsAnErrorAndNoTornTail) {
  OwnFile file;
  file.add({"SET", "k", "v"});
  file.end_batch();
  virtual_disk::VirtualDisk disk;
  disk.put("f", file.bytes() + "*1");
  for (uint64_t number = 1;; ++number) {
    disk.restart_count();
    disk.fail_operation(number);
    if (scan_aof(disk, "f")) {
      EXPECT_GT(number, 4U) << "the file is opened and read twice";
      break;
    }
  }
}

TEST(AofReaderTest, TornTailIsCutAndTheFileContinues) {
  OwnFile file;
  file.add({"SET", "k", "v"});
  file.end_batch();
  virtual_disk::VirtualDisk disk;
  disk.put("f", file.bytes() + encode({"SET", "k", "w"}) + "*3\r\n$3");
  const auto torn = scan_aof(disk, "f").value();
  EXPECT_EQ(torn.condition, Condition::kTorn);
  EXPECT_EQ(torn.fault_offset, file.bytes().size() + encode({"SET", "k", "w"}).size());
  EXPECT_EQ(aof_error("f", torn).message,
            "ERR append log '" + whole("f") + "', offset " + std::to_string(torn.fault_offset) +
                ": torn: the end comes inside of a command (Unexpected end "
                "of file reading the append only file)");
  ASSERT_TRUE(cut_torn_tail(disk, "f", torn));
  disk.cut_power(virtual_disk::Unsynced::kLost);
  RunningChecksum checksum = torn.checksum;
  std::string batch = aof_files::kSet;
  end_aof_batch(batch, checksum);
  disk.put("f", *disk.content("f") + batch);
  const auto scan = scan_aof(disk, "f").value();
  EXPECT_EQ(scan.condition, Condition::kWhole);
  EXPECT_EQ(scan.command_count, 3U);
}

TEST(AofReaderTest, FilesOfOtherServersAreRead) {
  for (const auto& [name, command_count] : std::vector<std::pair<std::string, uint64_t>>{
           {"redisbloom/aof-preamble-no-live/appendonlydir/appendonly.aof.1.base.aof", 0},
           {"redisbloom/aof-preamble-no-live/appendonlydir/appendonly.aof.1.incr.aof", 371},
           {"redisbloom/aof-preamble-no-rewritten/appendonlydir/appendonly.aof.2.base.aof", 50},
           {"redisbloom/aof-preamble-yes-rewritten/appendonlydir/appendonly.aof.2.incr.aof", 4},
           {"valkey-bloom/aof-preamble-no-live/appendonlydir/appendonly.aof.1.incr.aof", 350},
           {"valkey-bloom/aof-preamble-no-rewritten/appendonlydir/appendonly.aof.2.base.aof", 27},
       }) {
    const std::string bytes = vectors::read(name);
    const Reading reading = read(bytes);
    EXPECT_EQ(reading.scan.condition, Condition::kWhole) << name << reading.scan.reason;
    EXPECT_FALSE(reading.scan.has_effect_semantics);
    EXPECT_EQ(reading.scan.command_count, command_count) << name;
    std::string again;
    for (const Command& command : reading.commands) again += encode(command);
    EXPECT_TRUE(again == bytes) << name;
  }
}

}  // namespace
}  // namespace persistence
