// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/keyspace/keyspace.h"
#include "persistence/rdb/rdb_writer.h"
#include "tests/support/memory_streams.h"
#include "tests/support/snapshots.h"
#include "tests/support/vectors.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using snapshots::Container;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RdbCheckTest : public ::testing::Test {
 protected:
  RdbVerdict check(const std::string& bytes) {
    disk_.put("dump.rdb", bytes);
    return check_rdb_file(disk_, "dump.rdb");
  }
  static RdbSummary summary_of(const std::string& bytes) {
    MemorySource source(bytes);
    return check_rdb(source);
  }
  // Two strings in database 0, one of them with an expiry, and one in database 3.
  static std::string written() {
    core::keyspace::Keyspace keyspace(4, 1);
    const auto put = [&](unsigned database, std::string_view name) -> core::keyspace::Entry& {
      auto& entry = keyspace.insert(database, keyspace.ref(name));
      EXPECT_TRUE(entry.set_string("value"));
      return entry;
    };
    put(0, "a");
    put(3, "c");
    keyspace.set_expiry(0, keyspace.ref("b"), put(0, "b"), 4'102'444'800'000);
    std::string bytes;
    StringSink sink(bytes);
    EXPECT_TRUE(write_rdb(sink, keyspace, {}));
    return bytes;
  }

  virtual_disk::VirtualDisk disk_;
};

TEST_F(RdbCheckTest, CountsKeysByTypeAndDatabase) {
  const RdbSummary summary = summary_of(written());
  EXPECT_FALSE(summary.error);
  EXPECT_EQ(summary.keys.at(0).at("string"), 2U);
  EXPECT_EQ(summary.keys.at(3).at("string"), 1U);
  EXPECT_EQ(summary.keys_with_expiry, 1U);
}

TEST_F(RdbCheckTest, SoundFileIsDescribedInAFewLines) {
  const RdbVerdict verdict = check(written());
  EXPECT_TRUE(verdict.is_sound);
  EXPECT_THAT(verdict.text, StartsWith("dump.rdb:\n"));
  EXPECT_THAT(verdict.text, HasSubstr("database 0: 2 string\ndatabase 3: 1 string\n"));
  EXPECT_THAT(verdict.text, HasSubstr("keys with an expiry: 1\n"));
  EXPECT_THAT(verdict.text, HasSubstr("check sum ok\n"));
  EXPECT_THAT(verdict.text, EndsWith("OK\n"));
}

TEST_F(RdbCheckTest, MissingChecksumIsReported) {
  const RdbVerdict verdict = check(vectors::read("redisbloom/dump-nochecksum.rdb"));
  EXPECT_TRUE(verdict.is_sound);
  EXPECT_THAT(verdict.text, HasSubstr("check sum not written\n"));
}

TEST_F(RdbCheckTest, FiltersAreCountedByTheirLayout) {
  EXPECT_THAT(check(vectors::read("redisbloom/dump.rdb")).text, HasSubstr(" redisbloom filter\n"));
  EXPECT_THAT(check(vectors::read("valkey-bloom/dump.rdb")).text,
              HasSubstr(" valkey-bloom filter\n"));
}

TEST_F(RdbCheckTest, UnsupportedTypesAreNoFault) {
  const RdbVerdict verdict = check(vectors::read("redisbloom/mixed-types.rdb"));
  EXPECT_TRUE(verdict.is_sound);
  EXPECT_THAT(verdict.text, HasSubstr(" (foreign)\n"));
}

TEST_F(RdbCheckTest, EveryTruncationIsFound) {
  const std::string bytes = written();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const RdbVerdict verdict = check(bytes.substr(0, size));
    EXPECT_FALSE(verdict.is_sound) << size;
    EXPECT_THAT(verdict.text, HasSubstr("ERROR: ")) << size;
  }
}

TEST_F(RdbCheckTest, KeysBeforeAFaultAreCounted) {
  const std::string bytes = written();
  const RdbVerdict verdict = check(bytes.substr(0, bytes.size() - 9));
  EXPECT_FALSE(verdict.is_sound);
  EXPECT_THAT(verdict.text, HasSubstr("database 0: 2 string\n"));
}

TEST_F(RdbCheckTest, FlippedBitIsFound) {
  std::string bytes = written();
  bytes[bytes.size() / 2] ^= 4;
  EXPECT_FALSE(check(bytes).is_sound);
}

TEST_F(RdbCheckTest, DuplicateKeyIsAFault) {
  Container container;
  container.string_key("same", "1");
  container.string_key("same", "2");
  const RdbSummary summary = summary_of(container.sealed());
  ASSERT_TRUE(summary.error);
  EXPECT_THAT(summary.error->message, HasSubstr("a key of database 0 occurs twice"));
}

TEST_F(RdbCheckTest, AuxFieldsPrintNoControlCharacters) {
  Container container;
  constexpr uint8_t kAux = 0xfa;
  container.u8(kAux);
  container.text("name\n\x1b[2J");
  container.text(std::string(500, 'v'));
  const RdbVerdict verdict = check(container.sealed());
  EXPECT_TRUE(verdict.is_sound) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("name\\x0a\\x1b[2J: " + std::string(100, 'v') + "...\n"));
}

TEST_F(RdbCheckTest, MissingFileIsNotSound) {
  const RdbVerdict verdict = check_rdb_file(disk_, "absent.rdb");
  EXPECT_FALSE(verdict.is_sound);
  EXPECT_THAT(verdict.text, StartsWith("ERROR: "));
}

}  // namespace
}  // namespace persistence
