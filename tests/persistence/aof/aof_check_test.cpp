// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "persistence/aof/aof_manifest.h"
#include "tests/support/aof_files.h"
#include "tests/support/snapshots.h"
#include "tests/support/vectors.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kSnapshot =
    vectors::read("redisbloom/aof-preamble-yes-live/appendonlydir/appendonly.aof.1.base.rdb");

class AofCheckTest : public ::testing::Test {
 protected:
  AofCheckTest() {
    file_.add({"SET", "k", "v"});
    file_.add_transaction({{"DEL", "a"}, {"DEL", "b"}});
    file_.end_batch();
    AofManifest manifest;
    manifest.replace_base(AofNames("a"), AofBaseFormat::kRdb);
    manifest.add_incremental(AofNames("a"));
    manifest.add_incremental(AofNames("a"));
    disk_.put("d/a.manifest", manifest.encode());
    disk_.put("d/a.1.base.rdb", kSnapshot);
    disk_.put("d/a.1.incr.aof", file_.bytes());
    disk_.put("d/a.2.incr.aof", file_.bytes());
  }

  AofCheckReport check(const std::string& path, bool fix = false) {
    return check_aof(disk_, path, {fix, std::nullopt});
  }
  AofCheckReport keep_until(uint64_t second) {
    return check_aof(disk_, "d/a.manifest", {false, second});
  }

  virtual_disk::VirtualDisk disk_;
  aof_files::OwnFile file_;
};

TEST_F(AofCheckTest, SoundLogIsDescribed) {
  const std::string size = std::to_string(file_.bytes().size());
  const std::string line =
      ": written by bloomery, commands 3, transactions 1, annotations 3 (checksums 2), sound "
      "bytes " +
      size + " of " + size + "\n";
  const auto report = check("d/a.manifest");
  EXPECT_EQ(report.text,
            "d/a.manifest: base 1, incremental files 2, history 0\n"
            "d/a.1.base.rdb: snapshot of 89 bytes\n"
            "d/a.1.incr.aof" +
                line + "d/a.2.incr.aof" + line + "The log is sound.\n");
  EXPECT_TRUE(report.is_sound);
}

TEST_F(AofCheckTest, TornTailOfTheLastFileIsCutOnlyWithFix) {
  disk_.put("d/a.2.incr.aof", file_.bytes() + "*3\r\n$3");
  auto report = check("d/a.manifest");
  EXPECT_FALSE(report.is_sound);
  EXPECT_THAT(report.text, HasSubstr("torn: the end comes inside of a command"));
  EXPECT_THAT(report.text, HasSubstr("d/a.2.incr.aof: --fix would cut off the last 6 bytes\n"));
  EXPECT_EQ(disk_.content("d/a.2.incr.aof"), file_.bytes() + "*3\r\n$3");

  report = check("d/a.manifest", true);
  EXPECT_TRUE(report.is_sound);
  EXPECT_THAT(report.text, HasSubstr("d/a.2.incr.aof: cut off the last 6 bytes\n"));
  EXPECT_EQ(disk_.content("d/a.2.incr.aof"), file_.bytes());
  EXPECT_THAT(check("d/a.manifest").text, Not(HasSubstr("torn")));
}

TEST_F(AofCheckTest, FixReportsThatItChangedNothing) {
  EXPECT_THAT(check("d/a.manifest", true).text,
              HasSubstr("--fix changed nothing: no end is torn\n"));
  disk_.put("d/a.2.incr.aof", file_.bytes() + "*3\r\n$3");
  EXPECT_THAT(check("d/a.manifest", true).text, Not(HasSubstr("changed nothing")));
  disk_.put("d/a.2.incr.aof", "nonsense\r\n" + file_.bytes());
  const auto damaged = check("d/a.manifest", true);
  EXPECT_FALSE(damaged.is_sound);
  EXPECT_THAT(damaged.text,
              HasSubstr("--fix changed nothing: it cuts a torn end, and no other damage\n"));
}

TEST_F(AofCheckTest, TornTailOfAnEarlierFileIsNotFixed) {
  disk_.put("d/a.1.incr.aof", file_.bytes() + "*3");
  const auto report = check("d/a.manifest", true);
  EXPECT_FALSE(report.is_sound);
  EXPECT_EQ(disk_.content("d/a.1.incr.aof"), file_.bytes() + "*3");
}

// The missing file may continue the log, so the torn file may not be the last one.
TEST_F(AofCheckTest, TornTailBeforeAMissingFileIsNotFixed) {
  disk_.put("d/a.1.incr.aof", file_.bytes() + "*3");
  ASSERT_TRUE(disk_.remove("d/a.2.incr.aof"));
  const auto report = check("d/a.manifest", true);
  EXPECT_FALSE(report.is_sound);
  EXPECT_THAT(report.text, HasSubstr("can't open 'd/a.2.incr.aof'"));
  EXPECT_EQ(disk_.content("d/a.1.incr.aof"), file_.bytes() + "*3");
}

TEST_F(AofCheckTest, TornTailBeforeAnEmptyFileIsFixed) {
  // The power failed during a rewrite. The rewrite had created a.2.incr.aof, but the server still
  // wrote its commands to a.1.incr.aof.
  disk_.put("d/a.1.incr.aof", file_.bytes() + "*3");
  disk_.put("d/a.2.incr.aof", aof_files::OwnFile().bytes());
  EXPECT_FALSE(check("d/a.manifest").is_sound);
  EXPECT_TRUE(check("d/a.manifest", true).is_sound);
  EXPECT_EQ(disk_.content("d/a.1.incr.aof"), file_.bytes());
}

// A base is complete before the next file is created, so no crash has torn this one. A start
// rejects it too.
TEST_F(AofCheckTest, TornBaseBeforeAnEmptyFileIsNotFixed) {
  disk_.put("d/a.2.incr.aof", aof_files::OwnFile().bytes());
  disk_.put("d/a.1.incr.aof", aof_files::OwnFile().bytes());
  for (const std::string& base : {file_.bytes() + "*3", kSnapshot + aof_files::kSet + "*3"}) {
    disk_.put("d/a.1.base.rdb", base);
    EXPECT_FALSE(check("d/a.manifest", true).is_sound);
    EXPECT_EQ(disk_.content("d/a.1.base.rdb"), base);
  }
}

TEST_F(AofCheckTest, TornTailOfTheOnlyFileIsFixed) {
  AofManifest manifest;
  manifest.replace_base(AofNames("a"), AofBaseFormat::kRdb);
  disk_.put("d/a.manifest", manifest.encode());
  for (const std::string& base : {file_.bytes(), kSnapshot + aof_files::kSet}) {
    disk_.put("d/a.1.base.rdb", base + "*3");
    EXPECT_TRUE(check("d/a.manifest", true).is_sound);
    EXPECT_EQ(disk_.content("d/a.1.base.rdb"), base);
  }
}

TEST_F(AofCheckTest, DamageIsReportedAndNotFixed) {
  std::string bytes = file_.bytes();
  bytes[bytes.find("\r\nv") + 2] = 'w';
  disk_.put("d/a.2.incr.aof", bytes);
  const auto report = check("d/a.manifest", true);
  EXPECT_FALSE(report.is_sound);
  EXPECT_THAT(
      report.text,
      HasSubstr("/d/a.2.incr.aof', offset " + std::to_string(bytes.size() - kChecksumLineBytes) +
                ": damaged: the checksum of the preceding bytes does not match"));
  EXPECT_EQ(disk_.content("d/a.2.incr.aof"), bytes);
}

TEST_F(AofCheckTest, AllFilesAreChecked) {
  disk_.put("d/a.1.base.rdb", kSnapshot.substr(0, 80));
  ASSERT_TRUE(disk_.remove("d/a.1.incr.aof"));
  const auto report = check("d/a.manifest");
  EXPECT_FALSE(report.is_sound);
  EXPECT_THAT(report.text, HasSubstr("d/a.1.base.rdb: offset 80"));
  EXPECT_THAT(report.text, HasSubstr("can't open 'd/a.1.incr.aof'"));
  EXPECT_THAT(report.text, HasSubstr("d/a.2.incr.aof: written by bloomery"));
}

TEST_F(AofCheckTest, DuplicateKeyInTheBaseIsAFault) {
  snapshots::Container twice;
  twice.string_key("k", "v");
  twice.string_key("k", "v");
  disk_.put("d/a.1.base.rdb", twice.sealed());
  const auto report = check("d/a.manifest");
  EXPECT_FALSE(report.is_sound);
  EXPECT_THAT(report.text, HasSubstr("a key of database 0 occurs twice"));
}

TEST_F(AofCheckTest, SingleFileIsChecked) {
  EXPECT_TRUE(check("d/a.1.incr.aof").is_sound);
  disk_.put("d/old.aof", kSnapshot + aof_files::kSet);
  const auto report = check("d/old.aof");
  EXPECT_TRUE(report.is_sound);
  EXPECT_EQ(report.text,
            "d/old.aof: snapshot of 89 bytes\n"
            "d/old.aof: without mark of bloomery, commands 1, transactions 0, annotations 0 "
            "(checksums 0), sound bytes 116 of 116\nThe log is sound.\n");
}

TEST_F(AofCheckTest, ManifestIsRecognizedByItsContent) {
  disk_.put("d/index", *disk_.content("d/a.manifest"));
  EXPECT_THAT(check("d/index").text, HasSubstr("d/index: base 1"));
  disk_.put("d/index", "#\nfile a.1.incr.aof seq 1 type i\n");
  EXPECT_THAT(check("d/index").text, HasSubstr("d/index: base 0"));
  EXPECT_FALSE(check("d/none").is_sound);
  disk_.put("d/index.manifest", "");
  EXPECT_THAT(check("d/index.manifest").text, HasSubstr(manifest_fault::kEmpty));
}

TEST_F(AofCheckTest, EndIsCutAfterASecond) {
  const std::string early = "#TS:100\r\n" + aof_files::kSet;
  const std::string late = "#TS:200\r\n" + aof_files::kSet;
  disk_.put("d/a.1.incr.aof", early + late);
  disk_.put("d/a.2.incr.aof", late + "*3\r\n");
  const auto report = keep_until(199);
  EXPECT_TRUE(report.is_sound);
  EXPECT_THAT(report.text, HasSubstr("d/a.2.incr.aof: cut off the last " +
                                     std::to_string(late.size()) + " bytes, written after 199\n"));
  EXPECT_THAT(report.text, HasSubstr("d/a.1.incr.aof: cut off the last " +
                                     std::to_string(late.size()) + " bytes, written after 199\n"));
  EXPECT_EQ(disk_.content("d/a.1.incr.aof"), early);
  EXPECT_EQ(disk_.content("d/a.2.incr.aof"), "");
  EXPECT_TRUE(check("d/a.manifest").is_sound);
}

TEST_F(AofCheckTest, NothingIsCutWithoutALaterTime) {
  const std::string bytes = "#TS:100\r\n" + aof_files::kSet;
  disk_.put("d/a.1.incr.aof", bytes);
  disk_.put("d/a.2.incr.aof", bytes);
  const auto report = keep_until(100);
  EXPECT_TRUE(report.is_sound);
  EXPECT_THAT(report.text, HasSubstr("Nothing was cut: the log has no time after 100\n"));
  EXPECT_EQ(disk_.content("d/a.2.incr.aof"), bytes);
}

TEST_F(AofCheckTest, TimeBeforeTheLogIsRefused) {
  const std::string bytes = "#TS:100\r\n" + aof_files::kSet;
  disk_.put("d/a.1.incr.aof", bytes);
  const auto report = keep_until(99);
  EXPECT_TRUE(report.is_sound);
  EXPECT_TRUE(report.has_cut_failed);
  EXPECT_THAT(report.text, HasSubstr("The log begins at 100, after 99"));
  EXPECT_THAT(report.text, EndsWith("\nThe log is sound, but it was not cut as requested.\n"));
  EXPECT_EQ(disk_.content("d/a.1.incr.aof"), bytes);
}

TEST_F(AofCheckTest, DamagedLogIsNotCutByTime) {
  const std::string bytes = "#TS:100\r\n" + aof_files::kSet + "#TS:200\r\n" + aof_files::kSet;
  disk_.put("d/a.1.incr.aof", "nonsense\r\n" + file_.bytes());
  disk_.put("d/a.2.incr.aof", bytes);
  EXPECT_FALSE(keep_until(150).is_sound);
  EXPECT_EQ(disk_.content("d/a.2.incr.aof"), bytes);
}

}  // namespace
}  // namespace persistence
