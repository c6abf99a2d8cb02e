// SPDX-License-Identifier: MIT
//
// Effects of crashes and failing disks on an append log file. All whole commands before a torn tail
// are read, a damaged file is rejected, and no command is read that was not written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "persistence/aof/aof_reader.h"
#include "tests/support/aof_files.h"
#include "tests/support/sanitized.h"

namespace persistence {
namespace {

using aof_files::Commands;
using aof_files::encode;
using aof_files::OwnFile;
using aof_files::random_bytes;
using aof_files::random_file;
using aof_files::read;
using aof_files::Reading;
using Condition = AofScan::Condition;

constexpr uint32_t kAofDamageSeed = 20240707;

class AofDamageTest : public ::testing::Test {
 protected:
  AofDamageTest() { RecordProperty("seed", kAofDamageSeed); }

  std::minstd_rand random_{kAofDamageSeed};
};

TEST_F(AofDamageTest, RandomFilesAreReadAsWritten) {
  for (int i = 0; i < 200; ++i) {
    const OwnFile file = random_file(random_, random_() % 20);
    const Reading reading = read(file.bytes());
    ASSERT_EQ(reading.scan.condition, Condition::kWhole) << i;
    ASSERT_EQ(reading.commands, file.commands()) << i;
    ASSERT_EQ(reading.scan.command_count, file.commands().size());
  }
}

TEST_F(AofDamageTest, FileCutAnywhereKeepsItsWholeCommands) {
  constexpr size_t kStep = support::rounds<size_t>(1, 13);
  for (int i = 0; i < 3; ++i) {
    const OwnFile file = random_file(random_, 20);
    for (size_t size = 0; size < file.bytes().size(); size += kStep) {
      const Reading reading = read(file.bytes().substr(0, size));
      ASSERT_NE(reading.scan.condition, Condition::kDamaged) << size << reading.scan.reason;
      ASSERT_EQ(reading.commands, file.commands_before(size)) << size;
      ASSERT_EQ(reading.scan.condition == Condition::kWhole, reading.scan.sound_bytes == size);
    }
  }
}

TEST_F(AofDamageTest, TornTailsAreCutBackToTheLastWholeCommand) {
  const OwnFile file = random_file(random_, 200);
  constexpr size_t kTails = support::rounds<size_t>(300, 60);
  for (size_t lost = 1; lost <= kTails; ++lost) {
    const size_t size = file.bytes().size() - lost;
    const Reading reading = read(file.bytes().substr(0, size));
    EXPECT_NE(reading.scan.condition, Condition::kDamaged) << lost;
    EXPECT_EQ(reading.commands, file.commands_before(size)) << lost;
  }
  for (size_t i = 0; i < kTails; ++i) {
    const size_t size = 1 + random_() % 8192;
    const bool zeros = i % 2 == 0;
    const std::string tail = zeros ? std::string(size, '\0') : random_bytes(random_, size);
    const Reading reading = read(file.bytes() + tail);
    EXPECT_NE(reading.scan.condition, Condition::kDamaged) << i << reading.scan.reason;
    EXPECT_EQ(reading.commands, file.commands()) << i;
    EXPECT_TRUE(!zeros || reading.scan.sound_bytes == file.bytes().size()) << i;
  }
}

TEST_F(AofDamageTest, EachFlippedBitIsRefusedOrChangesNothing) {
  const OwnFile file = random_file(random_, 6);
  constexpr size_t kStep = support::rounds<size_t>(1, 5);
  size_t refused = 0;
  for (size_t bit = 0; bit < file.bytes().size() * 8; bit += kStep) {
    std::string bytes = file.bytes();
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const Reading reading = read(std::move(bytes));
    if (reading.scan.condition == Condition::kDamaged) {
      ++refused;
      ASSERT_TRUE(reading.commands.empty());
    } else {
      ASSERT_EQ(reading.commands, file.commands()) << bit << reading.scan.reason;
      ASSERT_TRUE(reading.scan.has_effect_semantics) << bit;
    }
  }
  EXPECT_GT(refused * kStep, (file.bytes().size() - 2 * kChecksumLineBytes) * 8);
}

TEST_F(AofDamageTest, FlippedBitsInLargeFilesAreHarmless) {
  for (int i = 0; i < support::rounds(2000, 300); ++i) {
    const OwnFile file = random_file(random_, 10 + random_() % 20);
    std::string bytes = file.bytes();
    const size_t bit = random_() % (bytes.size() * 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const Reading reading = read(std::move(bytes));
    if (reading.scan.condition == Condition::kDamaged) continue;
    ASSERT_EQ(reading.commands, file.commands()) << i << ", bit " << bit;
  }
}

TEST_F(AofDamageTest, OverwrittenBytesAreRefusedOrLoseATailOnly) {
  for (int i = 0; i < support::rounds(2000, 300); ++i) {
    const OwnFile file = random_file(random_, 10);
    std::string bytes = file.bytes();
    const size_t at = random_() % bytes.size();
    const std::string other = random_bytes(random_, 1 + random_() % 40);
    bytes.replace(at, std::min(other.size(), bytes.size() - at), other);
    const Reading reading = read(std::move(bytes));
    if (reading.scan.condition == Condition::kDamaged) continue;
    // The reader may drop only data after the last checksum line.
    ASSERT_LE(reading.commands.size(), file.commands().size());
    ASSERT_GE(reading.scan.sound_bytes + 8192, file.bytes().size());
    for (size_t c = 0; c < reading.commands.size(); ++c) {
      ASSERT_EQ(reading.commands[c], file.commands()[c]) << i;
    }
  }
}

TEST_F(AofDamageTest, LengthHidingChecksumLinesIsDamage) {
  OwnFile file;
  file.add({"SET", "k", std::string(10, 'v')});
  file.end_batch();
  const size_t batch_bytes = file.bytes().size();
  file.add({"SET", "k", "w"});
  file.end_batch();
  // The damaged length of the value covers the rest of the file, including its last line end.
  std::string bytes = file.bytes();
  const size_t length = bytes.find("$10\r\n");
  const size_t swallowed = bytes.size() + 1 - 2 - (length + 6);
  ASSERT_GE(swallowed, 100U) << "the length has an additional digit";
  bytes.replace(length, 3, "$" + std::to_string(swallowed));
  const Reading reading = read(bytes);
  EXPECT_EQ(reading.scan.condition, Condition::kDamaged);
  EXPECT_EQ(reading.scan.reason, aof_fault::kSwallowedChecksum);
  EXPECT_EQ(reading.scan.fault_offset, batch_bytes - kChecksumLineBytes + 1);
}

TEST_F(AofDamageTest, WrongLastChecksumIsDamage) {
  OwnFile file;
  file.add({"SET", "k", "v"});
  file.end_batch();
  std::string bytes = file.bytes();
  char& digit = bytes[bytes.size() - 3];
  digit = digit == '0' ? '1' : '0';
  const Reading reading = read(bytes);
  EXPECT_EQ(reading.scan.condition, Condition::kDamaged);
  EXPECT_EQ(reading.scan.fault_offset, bytes.size() - kChecksumLineBytes);
}

// Fills the bytes from `begin` to `end` with zeros. They then look as if a power cut had prevented
// their write, but not the write of a later block.
std::string with_hole(std::string bytes, size_t begin, size_t end) {
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
            bytes.begin() + static_cast<std::ptrdiff_t>(end), '\0');
  return bytes;
}

TEST_F(AofDamageTest, UnwrittenBlockIsATornTail) {
  OwnFile file;
  file.add({"SET", "k", std::string(300, 'v')});
  file.end_batch();
  const size_t synced = file.bytes().size();
  const Commands kept = file.commands();
  for (int i = 0; i < 10; ++i) {
    file.add({"SET", "k", std::string(300, 'w')});
    file.end_batch();
  }
  // Each hole begins at the end of the synced bytes. It ends with the block that contains this
  // position, or with a later block.
  ASSERT_LT(synced, 512U);
  for (const size_t end : {512U, 1024U, 1536U}) {
    const Reading reading = read(with_hole(file.bytes(), synced, end));
    EXPECT_EQ(reading.scan.condition, Condition::kTorn) << end;
    EXPECT_EQ(reading.commands, kept) << end;
    EXPECT_EQ(reading.scan.sound_bytes, synced) << end;
  }
  // This hole of zeros is exactly one block of 512 bytes, as after a power cut. The commands before
  // the hole are read.
  const Reading reading = read(with_hole(file.bytes(), 1024, 1536));
  EXPECT_EQ(reading.scan.condition, Condition::kTorn);
  EXPECT_EQ(reading.commands, file.commands_before(1024));
}

TEST_F(AofDamageTest, OtherZerosAreDamage) {
  OwnFile file;
  for (int i = 0; i < 10; ++i) {
    file.add({"SET", "k", std::string(300, 'w')});
    file.end_batch();
  }
  const std::string& bytes = file.bytes();
  EXPECT_EQ(read(with_hole(bytes, 1030, 1536)).scan.condition, Condition::kDamaged);
  EXPECT_EQ(read(with_hole(bytes, 1024, 1530)).scan.condition, Condition::kDamaged);
  // A hole that ends inside a block is not the result of a power cut.
  const size_t line_end = bytes.find("\r\n*") + 2;
  EXPECT_EQ(read(with_hole(bytes, line_end, line_end + 20)).scan.condition, Condition::kDamaged);
}

TEST_F(AofDamageTest, FlippedLengthBeforeAValueOfZerosIsDamage) {
  OwnFile file;
  file.add({"SET", "k", std::string(4096, '\0')});
  file.add({"SET", "after", "v"});
  file.end_batch();
  std::string bytes = file.bytes();
  bytes.replace(bytes.find("$4096"), 5, "$0096");
  EXPECT_EQ(read(bytes).scan.condition, Condition::kDamaged);
}

TEST_F(AofDamageTest, TornTailOfAForeignFile) {
  const std::string whole = aof_files::kSet + encode({"MULTI"}) + aof_files::kSet +
                            aof_files::kSet + encode({"EXEC"}) + aof_files::kSet;
  const size_t multi = aof_files::kSet.size();
  const size_t exec_end = whole.size() - aof_files::kSet.size();
  for (size_t size = 0; size < whole.size(); ++size) {
    const Reading reading = read(whole.substr(0, size));
    size_t sound = 0;
    for (const size_t end : {multi, exec_end}) sound = size >= end ? end : sound;
    ASSERT_EQ(reading.scan.sound_bytes, sound) << size;
    EXPECT_EQ(reading.scan.condition, size == sound ? Condition::kWhole : Condition::kTorn);
    const size_t command_count = sound == 0 ? 0 : sound == multi ? 1 : 3;
    EXPECT_EQ(reading.commands, Commands(command_count, {"SET", "k", "v"}));
  }
  for (const size_t zeros : {1U, 511U, 512U, 300'000U}) {
    const std::string tail(zeros, '\0');
    const Reading reading = read(whole + tail);
    EXPECT_EQ(reading.scan.condition, Condition::kTorn) << zeros;
    EXPECT_EQ(reading.scan.sound_bytes, whole.size());
    EXPECT_EQ(read(fmt::format("{}*3\r\n{}", whole, tail)).scan.condition, Condition::kTorn);
    EXPECT_EQ(read(whole + tail + aof_files::kSet).scan.condition, Condition::kDamaged);
  }
}

}  // namespace
}  // namespace persistence
