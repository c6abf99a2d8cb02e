// SPDX-License-Identifier: MIT
//
// Loads snapshots that were written by Redis with RedisBloom and by Valkey with valkey-bloom.
#include <gtest/gtest.h>

#include "core/keyspace/keyspace.h"
#include "persistence/rdb/rdb_check.h"
#include "persistence/rdb/rdb_loader.h"
#include "persistence/rdb/rdb_writer.h"
#include "tests/support/filters.h"
#include "tests/support/snapshots.h"
#include "tests/support/vectors.h"

namespace persistence {
namespace {

using core::keyspace::Entry;
using core::keyspace::Keyspace;

constexpr int64_t kExpiryOfTheVectors = 4102444800000;
const std::string kWriters[] = {"redisbloom", "valkey-bloom"};
const std::string kFullFiles[] = {
    "dump.rdb", "dump-uncompressed.rdb", "dump-nochecksum.rdb",
    "aof-preamble-yes-rewritten/appendonlydir/appendonly.aof.2.base.rdb"};

class Loaded {
 public:
  explicit Loaded(std::string_view bytes, const RdbReadOptions& options = {})
      : keyspace(2, 1), loader(keyspace, core::keyspace::kIgnoreExpiry) {
    MemorySource source(bytes);
    result = read_rdb(source, loader, core::UnlimitedMemory(), options);
  }
  const Entry* find(unsigned database, std::string_view name) const {
    return keyspace.find_any(database, keyspace.ref(name));
  }
  std::string text(unsigned database, std::string_view name) const {
    const Entry* entry = find(database, name);
    return entry == nullptr ? "absent" : snapshots::bytes_of(*entry);
  }

  Keyspace keyspace;
  KeyspaceLoader loader;
  core::Result<RdbReadResult> result = RdbReadResult{};
};

std::string key_of(const std::string& name) {
  return name == "binkey" ? std::string("bin\0key\xFF", 8) : name;
}

void expect_strings(const Loaded& loaded) {
  EXPECT_EQ(loaded.text(0, "str"), "hello world");
  EXPECT_EQ(loaded.text(0, "int"), "12345");
  EXPECT_EQ(loaded.text(0, "negint"), "-7");
  EXPECT_EQ(loaded.text(0, "bigint"), "9223372036854775807");
  EXPECT_EQ(loaded.text(0, "emptystr"), "");
  std::string long_text;
  for (int i = 0; i < 100; ++i) long_text += "abcdefghij";
  EXPECT_EQ(loaded.text(0, "longstr"), long_text);
  EXPECT_EQ(loaded.text(0, "ttlstr"), "v");
  std::string bitmap(8192, '\0');
  bitmap[0] = '\x01';
  bitmap[125] = '\x80';
  bitmap[8191] = '\x01';
  EXPECT_EQ(loaded.text(0, "bitmap"), bitmap);
  EXPECT_EQ(loaded.text(1, "db1str"), "one");
}

TEST(RdbVectors, EveryKeyAnswersAsInItsServer) {
  for (const std::string& writer : kWriters) {
    for (const std::string& file : kFullFiles) {
      const std::string path = fmt::format("{}/{}", writer, file);
      SCOPED_TRACE(path);
      const Loaded loaded(vectors::read(path));
      ASSERT_TRUE(loaded.result) << loaded.result.error().message;
      expect_strings(loaded);
      const auto all = vectors::expected(writer);
      for (const vectors::Expected& expected : all) {
        SCOPED_TRACE(expected.name);
        const Entry* entry = loaded.find(0, key_of(expected.name));
        ASSERT_NE(entry, nullptr);
        ASSERT_TRUE(entry->is_filter());
        filters::expect_as_described(entry->filter(), expected);
        const bool has_expiry = expected.name == "ttlbf";
        EXPECT_EQ(entry->expires_at_ms(),
                  has_expiry ? kExpiryOfTheVectors : core::keyspace::kNoExpiry);
      }
      EXPECT_EQ(loaded.find(0, "ttlstr")->expires_at_ms(), kExpiryOfTheVectors);
      const Entry* other = loaded.find(1, "db1filter");
      ASSERT_NE(other, nullptr);
      EXPECT_EQ(other->filter().item_count(), 5U);
      for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(other->filter().may_contain(fmt::format("db1:{}", i)));
      }
      EXPECT_EQ(loaded.keyspace.db_size(0), all.size() + 8);
      EXPECT_EQ(loaded.keyspace.db_size(1), 2U);
      EXPECT_EQ(loaded.result->total.keys, all.size() + 10);
    }
  }
}

TEST(RdbVectors, AuxFieldsAreRead) {
  const Loaded redis(vectors::read("redisbloom/dump.rdb"));
  EXPECT_EQ(redis.loader.aux_fields().at("redis-ver"), "7.0.15");
  EXPECT_EQ(redis.loader.aux_fields().at("aof-base"), "0");
  const Loaded valkey(vectors::read("valkey-bloom/dump.rdb"));
  EXPECT_EQ(valkey.loader.aux_fields().at("valkey-ver"), "8.0.1");
  const Loaded base(
      vectors::read("redisbloom/aof-preamble-yes-live/appendonlydir/appendonly.aof.1.base.rdb"));
  ASSERT_TRUE(base.result);
  EXPECT_EQ(base.loader.aux_fields().at("aof-base"), "1");
  EXPECT_EQ(base.result->total.keys, 0U);
}

TEST(RdbVectors, RandomSeedsAreKept) {
  const Loaded loaded(vectors::read("valkey-bloom/random-seed/dump.rdb"));
  ASSERT_TRUE(loaded.result) << loaded.result.error().message;
  for (const std::string name : {"rnd", "rndscaled"}) {
    const std::string payload = vectors::read("valkey-bloom/random-seed/" + name + ".dump.bin");
    std::string written;
    ByteWriter writer(written);
    encode_filter(writer, loaded.find(0, name)->filter(), Packing::kIfSmaller);
    EXPECT_EQ("\x07" + written, payload.substr(0, payload.size() - 10));
  }
}

TEST(RdbVectors, ForeignTypesAreSkippedAndCountedOrRefused) {
  for (const std::string& writer : kWriters) {
    SCOPED_TRACE(writer);
    const std::string bytes = vectors::read(writer + "/mixed-types.rdb");
    RdbReadOptions options;
    options.foreign_types = ForeignTypes::kSkip;
    const Loaded loaded(bytes, options);
    ASSERT_TRUE(loaded.result) << loaded.result.error().message;
    EXPECT_EQ(loaded.text(0, "s"), "v");
    EXPECT_EQ(loaded.find(0, "exp")->expires_at_ms(), kExpiryOfTheVectors);
    EXPECT_TRUE(loaded.find(0, "f")->filter().may_contain("a"));
    EXPECT_TRUE(loaded.find(0, "g")->filter().may_contain("b"));
    EXPECT_EQ(loaded.keyspace.db_size(0), 4U);
    std::map<std::string, uint64_t, std::less<>> expected = {
        {"function library", 1}, {"hash", 2}, {"list", 2}, {"set", 2}, {"stream", 1}, {"zset", 1}};
    if (writer == "redisbloom") {
      for (const char* module : {"MBbloomCF", "CMSk-TYPE", "TopK-TYPE", "TDIS-TYPE"}) {
        expected[std::string("module ") + module] = 1;
      }
    }
    EXPECT_EQ(loaded.loader.foreign_types(), expected);

    const Loaded refused(bytes);
    ASSERT_FALSE(refused.result);
    EXPECT_EQ(refused.result.error().message,
              fmt::format("offset {}: this server has no values of type 'function library'; "
                          "rdb-foreign-types skip leaves them out",
                          bytes.find('\xF5') + 1));
  }
}

TEST(RdbVectors, RewrittenSnapshotsAreEqual) {
  for (const std::string& writer : kWriters) {
    const Loaded loaded(vectors::read(writer + "/dump.rdb"));
    std::string bytes;
    StringSink sink(bytes);
    ASSERT_TRUE(write_rdb(sink, loaded.keyspace, {}));
    const Loaded again(bytes);
    ASSERT_TRUE(again.result) << again.result.error().message;
    EXPECT_EQ(snapshots::contents(again.keyspace), snapshots::contents(loaded.keyspace));
  }
}

TEST(RdbCheck, DescribesTheContentOfAFile) {
  const RdbVerdict sound =
      check_rdb_file(posix_file_system(), vectors::path("redisbloom/mixed-types.rdb"));
  EXPECT_TRUE(sound.is_sound);
  for (const char* line :
       {"redis-ver: 7.0.15\n", "database 0: 2 string\n", "database 0: 2 redisbloom filter\n",
        "database 0: 2 list (foreign)\n", "database 0: 1 module CMSk-TYPE (foreign)\n",
        "keys with an expiry: 1\n", "REDIS version 10, 5639 bytes, check sum ok\n", "OK\n"}) {
    EXPECT_NE(sound.text.find(line), std::string::npos) << line << " in\n" << sound.text;
  }
  const RdbVerdict unsummed =
      check_rdb_file(posix_file_system(), vectors::path("redisbloom/dump-nochecksum.rdb"));
  EXPECT_TRUE(unsummed.is_sound);
  EXPECT_NE(unsummed.text.find("check sum not written"), std::string::npos);
}

TEST(RdbCheck, ReportsTheFaultAndItsOffset) {
  const std::string whole = vectors::read("valkey-bloom/dump.rdb");
  std::string cut = whole.substr(0, whole.size() - 20);
  MemorySource source(cut);
  const RdbSummary summary = check_rdb(source);
  ASSERT_TRUE(summary.error);
  EXPECT_TRUE(summary.error->message.starts_with("offset ")) << summary.error->message;
  EXPECT_NE(describe(summary).find("ERROR: offset "), std::string::npos);
  const RdbVerdict absent = check_rdb_file(posix_file_system(), "/nonexistent/dump.rdb");
  EXPECT_FALSE(absent.is_sound);
  EXPECT_EQ(absent.text, "ERROR: can't open '/nonexistent/dump.rdb': No such file or directory\n");
}

TEST(RdbCheck, EscapesControlCharactersOfAFile) {
  snapshots::Container container;
  container.u8(rdb::kAux);
  container.text("na\nme");
  container.text("\x1B[2J\\");
  const std::string bytes = container.sealed();
  MemorySource source(bytes);
  EXPECT_TRUE(describe(check_rdb(source)).starts_with("na\\x0ame: \\x1b[2J\\x5c\n"));
}

}  // namespace
}  // namespace persistence
