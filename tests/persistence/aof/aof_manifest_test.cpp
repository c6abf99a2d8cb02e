// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/vectors.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using ::testing::HasSubstr;

core::Result<AofManifest> parse(std::string_view text) {
  return AofManifest::parse(text, "m");
}

AofManifest large_manifest() {
  const AofNames names("appendonly.aof");
  AofManifest manifest;
  manifest.replace_base(names, AofBaseFormat::kRdb);
  for (int i = 0; i < 3; ++i) manifest.add_incremental(names);
  manifest.replace_base(names, AofBaseFormat::kCommands);
  manifest.add_incremental(names);
  return manifest;
}

std::string on_line(int line, std::string_view reason) {
  return "line " + std::to_string(line) + ": " + std::string(reason);
}

std::string bad(int line, std::string_view reason) {
  return on_line(line, "Invalid AOF manifest file format, " + std::string(reason));
}

struct ManifestCase {
  std::string text;
  std::string reason;  // empty if the manifest is accepted
};

TEST(AofManifestTest, AcceptsAndRejectsAsRedis) {
  const std::string base = "file a.1.base.rdb seq 1 type b\n";
  const std::string incr = "file a.1.incr.aof seq 1 type i\n";
  // With this file name, a line of the manifest has 1024 bytes.
  const std::string x999(999, 'x');
  const ManifestCase cases[] = {
      {base + incr, ""},
      {base, ""},
      {incr, ""},
      {incr + base, ""},
      {base + "file a.5.incr.aof seq 5 type i\nfile a.9.incr.aof seq 9 type i\n", ""},
      {base + incr + incr, on_line(3, manifest_fault::kWrongOrder)},
      {"file a seq 2 type i\nfile b seq 1 type i\n", on_line(2, manifest_fault::kWrongOrder)},
      {"file a seq 2 type h\nfile b seq 1 type h\n" + incr, ""},
      {base + base, on_line(2, manifest_fault::kSecondBase)},
      {"file a seq 1 type x\n", on_line(1, manifest_fault::kUnknownType)},
      {"file a seq 1 type B\n", on_line(1, manifest_fault::kUnknownType)},
      {"", std::string(manifest_fault::kEmpty)},
      {"\n", bad(1, manifest_fault::kNotPairs)},
      {base + "\n" + incr, bad(2, manifest_fault::kNotPairs)},
      {base + " \t\r\n", bad(2, manifest_fault::kNotPairs)},
      {"file a seq 1 type b", bad(1, manifest_fault::kNoLineEnd)},
      {base + "file a seq 1 type i", bad(2, manifest_fault::kNoLineEnd)},
      {"# comment\n" + base + "#\n" + incr, ""},
      {"# comment\n", ""},
      {"# comment", bad(1, manifest_fault::kNoLineEnd)},
      {"  file a seq 1 type b \t\r\n", ""},
      {"file a seq 1 type b pad " + x999 + "\n", ""},
      {"file a seq 1 type b pad x" + x999 + "\n", on_line(1, manifest_fault::kLongLine)},
      {"file " + x999.substr(0, 255) + " seq 1 type b\n", ""},
      {"file " + x999.substr(0, 256) + " seq 1 type b\n", bad(1, manifest_fault::kNoFileName)},
      {"#" + std::string(1023, 'c') + "\n" + base, on_line(1, manifest_fault::kLongLine)},
      {"#" + std::string(1022, 'c') + "\n" + base, ""},
      {"type b seq 1 file a\n", ""},
      {"FILE a Seq 1 tYPE b\n", ""},
      {"file a seq 1 type b newkey newvalue\n", ""},
      {"file a seq 1 type i startoffset 0 endoffset 10\n", ""},
      {"file a seq 1 type\n", bad(1, manifest_fault::kNotPairs)},
      {"file a seq 1 type b odd\n", bad(1, manifest_fault::kNotPairs)},
      {"file a seq 1\n", bad(1, manifest_fault::kNotPairs)},
      {"file a seq 1 other b\n", bad(1, manifest_fault::kMissingField)},
      {"name a seq 1 type b\n", bad(1, manifest_fault::kMissingField)},
      {"file a sequ 1 type b\n", bad(1, manifest_fault::kMissingField)},
      {"file a seq 0 type b\n", bad(1, manifest_fault::kNoSequence)},
      {"file a seq x type b\n", bad(1, manifest_fault::kNoSequence)},
      {"file a seq 9223372036854775808 type b\n", bad(1, manifest_fault::kNoSequence)},
      // File names that a manifest must not contain.
      {"file d/a seq 1 type b\n", bad(1, manifest_fault::kNoFileName)},
      {"file d\\a seq 1 type b\n", bad(1, manifest_fault::kNoFileName)},
      {"file .. seq 1 type b\n", bad(1, manifest_fault::kNoFileName)},
      {"file \"\" seq 1 type b\n", bad(1, manifest_fault::kNoFileName)},
      {"file \"a\\x00b\" seq 1 type b\n", bad(1, manifest_fault::kNoFileName)},
      {"file \"a b\" seq 1 type b\n", ""},
      {"file 'a b' seq 1 type b\n", ""},
      {"file \"a b seq 1 type b\n", bad(1, manifest_fault::kNotPairs)},
      {"file \"a\"b seq 1 type b\n", bad(1, manifest_fault::kNotPairs)},
      {std::string("file a seq 1\0 type b\n", 21), bad(1, manifest_fault::kNoSequence)},
  };
  for (const ManifestCase& one : cases) {
    const auto manifest = parse(one.text);
    if (one.reason.empty()) {
      ASSERT_TRUE(manifest) << one.text << manifest.error().message;
    } else {
      ASSERT_FALSE(manifest) << one.text;
      EXPECT_THAT(manifest.error().message, HasSubstr(one.reason)) << one.text;
      EXPECT_THAT(manifest.error().message, HasSubstr("ERR bad append log manifest 'm'"));
    }
  }
}

TEST(AofManifestTest, FilesAreSortedByKind) {
  const auto manifest = parse(
      "file a.3.incr.aof seq 3 type i\nfile a.1.base.rdb seq 1 type h\n"
      "file a.2.base.aof seq 2 type b\nfile a.4.incr.aof seq 4 type i\n");
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->base(), (AofFile{"a.2.base.aof", 2}));
  EXPECT_EQ(manifest->history(), (std::vector<AofFile>{{"a.1.base.rdb", 1}}));
  EXPECT_EQ(manifest->incrementals(),
            (std::vector<AofFile>{{"a.3.incr.aof", 3}, {"a.4.incr.aof", 4}}));
  EXPECT_TRUE(manifest->lists("a.1.base.rdb"));
  EXPECT_TRUE(manifest->lists("a.4.incr.aof"));
  EXPECT_FALSE(manifest->lists("a.5.incr.aof"));
}

TEST(AofManifestTest, ManifestsOfOtherServersAreRead) {
  for (const std::string writer : {"redisbloom", "valkey-bloom"}) {
    for (const std::string kind : {"no-live", "no-rewritten", "yes-live", "yes-rewritten"}) {
      const std::string name =
          writer + "/aof-preamble-" + kind + "/appendonlydir/appendonly.aof.manifest";
      const auto manifest = parse(vectors::read(name));
      ASSERT_TRUE(manifest) << name;
      const std::string suffix = kind.starts_with("no") ? "aof" : "rdb";
      const std::string sequence = kind.ends_with("live") ? "1" : "2";
      EXPECT_EQ(manifest->base()->name, "appendonly.aof." + sequence + ".base." + suffix);
      ASSERT_EQ(manifest->incrementals().size(), 1U);
      EXPECT_EQ(manifest->incrementals()[0].name, "appendonly.aof." + sequence + ".incr.aof");
    }
  }
}

TEST(AofManifestTest, EncodedTextIsPortableAndHasAChecksum) {
  AofManifest manifest;
  manifest.replace_base(AofNames("a.aof"), AofBaseFormat::kRdb);
  manifest.add_incremental(AofNames("a.aof"));
  const std::string text = manifest.encode();
  EXPECT_THAT(text, ::testing::MatchesRegex("#bloomery-ver:1\n"
                                            "file a\\.aof\\.1\\.base\\.rdb seq 1 type b\n"
                                            "file a\\.aof\\.1\\.incr\\.aof seq 1 type i\n"
                                            "#bloomery-crc64:[0-9a-f]{16}\n"));
  EXPECT_EQ(parse(text).value(), manifest);
  EXPECT_EQ(parse(AofManifest().encode()).value(), AofManifest());
}

TEST(AofManifestTest, NamesOfAnyBytesAreKept) {
  for (const std::string name : {"with space.aof", "\"quotes\".aof", "it's", "tab\tlf\ncr\r.aof",
                                 "\xc3\xa4\xff\x01", "#x", "[*?]", "-"}) {
    AofManifest manifest = AofManifest::of_single_file(name);
    manifest.add_incremental(AofNames(name));
    const auto again = parse(manifest.encode());
    ASSERT_TRUE(again) << name << ": " << again.error().message;
    EXPECT_EQ(*again, manifest) << name;
  }
}

TEST(AofManifestTest, LongNameInAnyAlphabetFitsInItsLine) {
  std::string name;
  while (name.size() < 240) name += "\xd0\xb6";
  AofManifest manifest;
  manifest.add_incremental(AofNames(name));
  EXPECT_EQ(parse(manifest.encode()).value(), manifest);
  EXPECT_FALSE(parse("file \"" + std::string(255, '\x07') + "\" seq 1 type b\n"));
}

TEST(AofManifestTest, TruncatedManifestOfOursIsRejected) {
  const std::string text = large_manifest().encode();
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(parse(std::string_view(text).substr(0, size))) << size;
  }
  EXPECT_THAT(parse(text + "#\n").error().message, HasSubstr(manifest_fault::kTextAfterChecksum));
}

TEST(AofManifestTest, FlippedBitIsRefusedOrChangesNothing) {
  const AofManifest manifest = large_manifest();
  const std::string text = manifest.encode();
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto read = parse(flipped);
    EXPECT_TRUE(!read || *read == manifest) << bit;
  }
}

TEST(AofManifestTest, ManifestOfALaterVersionIsRefused) {
  EXPECT_THAT(parse("#bloomery-ver:2\n").error().message, HasSubstr(aof_fault::kLaterVersion));
  EXPECT_THAT(parse("#bloomery-ver:x\n").error().message,
              HasSubstr(manifest_fault::kMalformedLine));
}

TEST(AofManifestTest, RewriteMovesOldFilesToHistory) {
  const AofNames names("a");
  AofManifest manifest;
  EXPECT_FALSE(manifest.names_data());
  EXPECT_EQ(manifest.add_incremental(names).name, "a.1.incr.aof");
  EXPECT_EQ(manifest.replace_base(names, AofBaseFormat::kRdb).name, "a.1.base.rdb");
  EXPECT_TRUE(manifest.history().empty());
  manifest.add_incremental(names);
  EXPECT_EQ(manifest.replace_base(names, AofBaseFormat::kRdb).name, "a.2.base.rdb");
  EXPECT_EQ(manifest.incrementals(), (std::vector<AofFile>{{"a.2.incr.aof", 2}}));
  EXPECT_EQ(manifest.history(), (std::vector<AofFile>{{"a.1.base.rdb", 1}, {"a.1.incr.aof", 1}}));
  manifest.drop_history();
  EXPECT_TRUE(manifest.history().empty());
  EXPECT_TRUE(manifest.names_data());
}

TEST(AofManifestTest, NewFileNeverReusesAListedName) {
  auto manifest = parse(
      "file a.1.base.rdb seq 1 type h\nfile a.2.base.rdb seq 2 type h\n"
      "file a.1.incr.aof seq 9 type h\n");
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->replace_base(AofNames("a"), AofBaseFormat::kRdb).name, "a.3.base.rdb");
  EXPECT_EQ(manifest->add_incremental(AofNames("a")).name, "a.2.incr.aof");
}

TEST(AofManifestTest, RandomChangesSurviveEncoding) {
  constexpr uint32_t kSeed = 20240707;
  RecordProperty("seed", kSeed);
  std::minstd_rand random(kSeed);
  const AofNames names("log");
  AofManifest manifest;
  for (int i = 0; i < 2000; ++i) {
    switch (random() % 4) {
      case 0:
      case 1:
        manifest.add_incremental(names);
        break;
      case 2:
        manifest.replace_base(names, random() % 2 ? AofBaseFormat::kRdb : AofBaseFormat::kCommands);
        break;
      default:
        manifest.drop_history();
    }
    ASSERT_EQ(parse(manifest.encode()).value(), manifest) << i;
  }
}

TEST(AofManifestTest, SavedManifestIsOldOrNewAfterAPowerCut) {
  const AofNames names("log");
  const AofManifest old_one = AofManifest::of_single_file("log");
  for (uint64_t seed = 0; seed < 300; ++seed) {
    virtual_disk::VirtualDisk disk(seed);
    disk.put("dir/log.manifest", old_one.encode());
    disk.fail_from_operation(1 + seed % 7);
    const bool saved = bool(save_manifest(disk, {"dir", names}, large_manifest()));
    disk.cut_power(static_cast<virtual_disk::Unsynced>(seed % 3));
    const auto loaded = load_manifest(disk, "dir/log.manifest");
    ASSERT_TRUE(loaded) << seed << loaded.error().message;
    EXPECT_TRUE(*loaded == large_manifest() || (!saved && *loaded == old_one)) << seed;
  }
}

TEST(AofManifestTest, MissingManifestIsAnError) {
  virtual_disk::VirtualDisk disk;
  EXPECT_THAT(load_manifest(disk, "none").error().message, HasSubstr("No such file"));
}

}  // namespace
}  // namespace persistence
