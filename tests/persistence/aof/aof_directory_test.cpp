// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/aof_files.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using virtual_disk::Unsynced;
using virtual_disk::VirtualDisk;

class AofDirectoryTest : public ::testing::Test {
 protected:
  AofDirectoryTest() { disk_.add_directory("d"); }

  AofDirectory log() { return {disk_, "d", "logs", AofNames("a.aof")}; }
  void put_manifest(const std::string& text) { disk_.put("d/logs/a.aof.manifest", text); }
  std::vector<std::string> paths() {
    std::vector<std::string> paths;
    const auto start = log().find();
    if (!start) return {start.error().message};
    for (const auto& file : start->files) paths.push_back(file.path);
    return paths;
  }

  VirtualDisk disk_;
};

TEST_F(AofDirectoryTest, NoFilesAreAnEmptyDataSet) {
  EXPECT_THAT(paths(), ElementsAre());
  disk_.add_directory("d/logs");
  EXPECT_THAT(paths(), ElementsAre());
  put_manifest(AofManifest().encode());
  EXPECT_THAT(paths(), ElementsAre());
}

TEST_F(AofDirectoryTest, FilesAreInTheOrderOfLoading) {
  put_manifest(
      "file a.2.incr.aof seq 2 type i\nfile a.9.incr.aof seq 9 type i\n"
      "file a.1.base.rdb seq 1 type h\nfile a.2.base.rdb seq 2 type b\n");
  for (const char* name : {"a.2.incr.aof", "a.9.incr.aof", "a.2.base.rdb"}) {
    disk_.put(std::string("d/logs/") + name, "");
  }
  EXPECT_THAT(paths(),
              ElementsAre("d/logs/a.2.base.rdb", "d/logs/a.2.incr.aof", "d/logs/a.9.incr.aof"));
  const auto files = log().find().value().files;
  EXPECT_TRUE(files[0].is_base);
  EXPECT_FALSE(files[1].is_base);
  EXPECT_FALSE(files[1].is_last);
  EXPECT_TRUE(files[2].is_last);
}

TEST_F(AofDirectoryTest, MissingFileIsAnError) {
  put_manifest("file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\n");
  EXPECT_THAT(paths(),
              ElementsAre(HasSubstr("d/logs/a.1.base.rdb is missing: No such file or directory")));
  disk_.put("d/logs/a.1.base.rdb", "");
  EXPECT_THAT(paths(),
              ElementsAre(HasSubstr("d/logs/a.1.incr.aof is missing: No such file or directory")));
  put_manifest("file a.aof seq 1 type b\n");
  EXPECT_THAT(paths(),
              ElementsAre(HasSubstr("d/logs/a.aof is missing: No such file or directory")));
}

TEST_F(AofDirectoryTest, DamagedManifestIsAnErrorEvenBesideASingleFile) {
  disk_.put("d/a.aof", aof_files::kSet);
  put_manifest("file a.1.base.rdb");
  EXPECT_THAT(paths(), ElementsAre(HasSubstr("'d/logs/a.aof.manifest', line 1")));
}

TEST_F(AofDirectoryTest, SingleFileBecomesTheBase) {
  disk_.put("d/a.aof", aof_files::kSet);
  const auto start = log().find().value();
  EXPECT_TRUE(start.took_in_single_file);
  EXPECT_EQ(start.files.size(), 1U);
  EXPECT_EQ(disk_.content("d/logs/a.aof"), aof_files::kSet);
  EXPECT_FALSE(disk_.exists("d/a.aof"));
  EXPECT_FALSE(log().find().value().took_in_single_file);
  EXPECT_THAT(paths(), ElementsAre("d/logs/a.aof"));
}

TEST_F(AofDirectoryTest, SingleFileReplacesAnEmptyManifest) {
  disk_.put("d/a.aof", aof_files::kSet);
  put_manifest("# nothing\n");
  EXPECT_THAT(paths(), ElementsAre("d/logs/a.aof"));
}

TEST_F(AofDirectoryTest, InterruptedMoveIsCompleted) {
  disk_.put("d/a.aof", aof_files::kSet);
  put_manifest("file a.aof seq 1 type b\n");
  EXPECT_THAT(paths(), ElementsAre("d/logs/a.aof"));
  EXPECT_EQ(disk_.content("d/logs/a.aof"), aof_files::kSet);
}

TEST_F(AofDirectoryTest, SingleFileBesideALogIsIgnored) {
  disk_.put("d/a.aof", "old");
  disk_.put("d/logs/a.aof", aof_files::kSet);
  put_manifest("file a.aof seq 1 type b\n");
  EXPECT_THAT(paths(), ElementsAre("d/logs/a.aof"));
  EXPECT_EQ(disk_.content("d/logs/a.aof"), aof_files::kSet);
  EXPECT_EQ(disk_.content("d/a.aof"), "old");
}

TEST_F(AofDirectoryTest, MoveSurvivesAPowerCutAtEachOperation) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    VirtualDisk disk(seed);
    disk.add_directory("d");
    disk.put("d/a.aof", aof_files::kSet);
    AofDirectory log(disk, "d", "logs", AofNames("a.aof"));
    disk.fail_from_operation(1 + seed % 12);
    (void)log.find();
    disk.cut_power(static_cast<Unsynced>(seed % 3));
    const auto start = log.find();
    ASSERT_TRUE(start) << seed << start.error().message;
    ASSERT_EQ(start->files.size(), 1U) << seed;
    EXPECT_EQ(disk.content(start->files[0].path), aof_files::kSet) << seed;
  }
}

TEST_F(AofDirectoryTest, CommandsWithoutAManifestAreAnError) {
  disk_.put("d/logs/a.aof.1.incr.aof", "");
  EXPECT_THAT(paths(), ElementsAre()) << "the start was interrupted before it wrote a manifest";
  disk_.put("d/logs/a.aof.1.incr.aof", aof_files::kSet);
  EXPECT_THAT(paths(), ElementsAre(HasSubstr("put the manifest back")));
  disk_.put("d/logs/a.aof.1.incr.aof", "?");
  EXPECT_THAT(paths(), ElementsAre(HasSubstr("put the manifest back")));
}

TEST_F(AofDirectoryTest, SweepRemovesTemporariesAndHistory) {
  put_manifest(
      "file a.aof.2.base.rdb seq 2 type b\nfile a.aof.1.base.rdb seq 1 type h\n"
      "file a.aof.1.incr.aof seq 1 type h\nfile a.aof.2.incr.aof seq 2 type i\n"
      "file gone seq 1 type h\n");
  const std::vector<std::string> kept = {"d/dump.rdb", "d/logs/a.aof.2.base.rdb",
                                         "d/logs/a.aof.2.incr.aof", "d/logs/temp-b.aof.manifest",
                                         "d/logs/a.aof.manifest"};
  const std::vector<std::string> swept = {
      "d/temp-rewriteaof-12.aof",       "d/temp-rewriteaof-bg-12.aof", "d/logs/a.aof.1.base.rdb",
      "d/logs/temp-a.aof.manifest",     "d/logs/temp-a.aof.incr",      "d/logs/a.aof.1.incr.aof",
      "d/logs/temp-rewriteaof-bg-3.aof"};
  for (const auto& path : kept) {
    if (!disk_.exists(path)) disk_.put(path, "");
  }
  for (const auto& path : swept) disk_.put(path, "");
  auto start = log().find().value();
  std::vector<std::string> removed;
  AofDirectory sweeper = log();
  sweeper.on_removed = [&removed](const std::string& path) { removed.push_back(path); };
  ASSERT_TRUE(sweeper.sweep(start.manifest));
  EXPECT_THAT(removed, ::testing::UnorderedElementsAreArray(swept));
  for (const auto& path : kept) EXPECT_TRUE(disk_.exists(path)) << path;
  for (const auto& path : swept) EXPECT_FALSE(disk_.exists(path)) << path;
  EXPECT_TRUE(start.manifest.history().empty());
  EXPECT_EQ(log().find().value().manifest, start.manifest);
}

TEST_F(AofDirectoryTest, SweepNeverRemovesData) {
  put_manifest("file x seq 1 type b\nfile x seq 1 type h\nfile temp-a.aof.incr seq 1 type i\n");
  disk_.put("d/logs/x", "");
  disk_.put("d/logs/temp-a.aof.incr", "");
  auto start = log().find().value();
  ASSERT_TRUE(log().sweep(start.manifest));
  EXPECT_THAT(paths(), ElementsAre("d/logs/x", "d/logs/temp-a.aof.incr"));
}

TEST_F(AofDirectoryTest, SweepSurvivesAPowerCutAtEachOperation) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    VirtualDisk disk(seed);
    disk.add_directory("d");
    AofManifest manifest;
    const AofNames names("a.aof");
    for (int i = 0; i < 3; ++i) {
      disk.put("d/logs/" + manifest.add_incremental(names).name, aof_files::kSet);
      disk.put("d/logs/" + manifest.replace_base(names, AofBaseFormat::kRdb).name, "");
    }
    disk.put("d/logs/a.aof.manifest", manifest.encode());
    AofDirectory log(disk, "d", "logs", names);
    const auto before = log.find().value().files.size();
    disk.restart_count();
    disk.fail_from_operation(1 + seed % 14);
    (void)log.sweep(manifest);
    disk.cut_power(static_cast<Unsynced>(seed % 3));
    const auto start = log.find();
    ASSERT_TRUE(start) << seed << start.error().message;
    EXPECT_EQ(start->files.size(), before) << seed;
  }
}

}  // namespace
}  // namespace persistence
