// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_reader.h"

#include <gmock/gmock.h>

#include <random>

#include "core/keyspace/keyspace.h"
#include "persistence/rdb/dump_payload.h"
#include "persistence/rdb/rdb_check.h"
#include "persistence/rdb/rdb_entry.h"
#include "persistence/rdb/rdb_writer.h"
#include "tests/support/budget.h"
#include "tests/support/filters.h"
#include "tests/support/sanitized.h"
#include "tests/support/snapshots.h"

namespace persistence {
namespace {

using core::keyspace::Keyspace;
using snapshots::Container;
using snapshots::contents;
using snapshots::load;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kReaderHashSeed = 3;

RdbReadOptions skipping() {
  RdbReadOptions options;
  options.foreign_types = ForeignTypes::kSkip;
  return options;
}

// Reads `bytes` as a snapshot. Returns the error, or "".
std::string error_of(std::string_view bytes, const RdbReadOptions& options = {},
                     const core::MemoryBudget& budget = core::UnlimitedMemory()) {
  Keyspace keyspace(4, kReaderHashSeed);
  const auto result = load(bytes, keyspace, options, budget);
  return result ? "" : result.error().message;
}

// Returns a small file with every kind of record.
std::string small_file(bool has_sum) {
  Keyspace keyspace(4, kReaderHashSeed);
  const auto text = [&](unsigned database, std::string_view name, std::string_view value) {
    EXPECT_TRUE(keyspace.insert(database, keyspace.ref(name)).set_string(value));
  };
  text(0, "number", "12345");
  text(0, "text", "hello");
  text(3, "long", std::string(300, 'z') + "end");
  text(3, "5", "");
  auto& dying = keyspace.insert(3, keyspace.ref("dying"));
  keyspace.set_expiry(3, keyspace.ref("dying"), dying, 4102444800000);
  int index = 0;
  for (const auto layout : filters::kLayouts) {
    const auto parameters = filters::parameters_of(layout, 0.02, 20, 2);
    keyspace.insert(0, keyspace.ref(fmt::format("filter:{}", index++)))
        .set_filter(filters::make(parameters, "item", 60));
  }
  std::string bytes;
  StringSink sink(bytes);
  RdbWriteOptions options;
  options.has_sum = has_sum;
  EXPECT_TRUE(write_rdb(sink, keyspace, options));
  return bytes;
}

TEST(RdbReader, VersionsAndMagicsAreChecked) {
  struct Case {
    const char* header;
    const char* error;
  };
  const Case cases[] = {
      {"REDIS0005", ""},
      {"REDIS0009", ""},
      {"REDIS0011", ""},
      {"REDIS0012", ""},
      {"REDIS0015", ""},
      {"VALKEY080", ""},
      {"VALKEY081", ""},
      {"REDIS0000", "offset 9: the snapshot's version is no number from 1 up"},
      {"REDIS001x", "offset 9: the snapshot's version is no number from 1 up"},
      {"REDIS-001", "offset 9: the snapshot's version is no number from 1 up"},
      {"redis0010", "offset 9: this is no snapshot: it does not begin with REDIS or VALKEY"},
  };
  for (const Case& c : cases) {
    Container container(c.header);
    container.string_key("k", "v");
    EXPECT_EQ(error_of(container.sealed()), c.error) << c.header;
  }
  // Before version 5 of the format, no checksum follows the end mark.
  EXPECT_EQ(error_of("REDIS0004\xFF"), "");
  EXPECT_EQ(error_of("REDIS0005\xFF"), "offset 10: the bytes end here too early");
}

TEST(RdbReader, AttributesApplyToOneKeyOnly) {
  Container container;
  container.u8(rdb::kSelectDatabase);
  container.length(2);
  container.u8(rdb::kExpirySeconds);
  container.u32(2000);
  container.u8(rdb::kIdle);
  container.length(77777);
  container.string_key("seconds", "a");
  container.string_key("none", "b");
  container.u8(rdb::kFrequency);
  container.u8(255);
  container.u8(rdb::kExpiryMilliseconds);
  container.i64(1234567);
  container.string_key("milliseconds", "c");
  container.u8(rdb::kExpiryMilliseconds);
  container.i64(-1);
  container.string_key("long gone", "d");
  Keyspace keyspace(4, kReaderHashSeed);
  const auto result = load(container.sealed(), keyspace);
  ASSERT_TRUE(result) << result.error().message;
  const auto expiry = [&](std::string_view name) {
    return keyspace.find_any(2, keyspace.ref(name))->expires_at_ms();
  };
  EXPECT_EQ(expiry("seconds"), 2000000);
  EXPECT_EQ(expiry("none"), core::keyspace::kNoExpiry);
  EXPECT_EQ(expiry("milliseconds"), 1234567);
  EXPECT_EQ(expiry("long gone"), 0);
}

TEST(RdbReader, KeyCountHintIsLimitedByTheBytes) {
  class Hints final : public RdbVisitor {
   public:
    void size_hint(uint64_t database, uint64_t keys, uint64_t expires) override {
      seen += fmt::format("{} {} {}, ", database, keys, expires);
    }
    core::Result<> entry(uint64_t /*database*/, core::keyspace::EntryPtr /*entry*/) override {
      return {};
    }
    std::string seen;
  };
  Container container;
  container.u8(rdb::kResizeDatabase);
  container.length(2);
  container.length(1);
  container.u8(rdb::kSelectDatabase);
  container.length(3);
  container.u8(rdb::kResizeDatabase);
  container.length(uint64_t{1} << 60);
  container.length(uint64_t{1} << 61);
  container.string_key("k", "v");
  container.string_key("l", "v");
  const std::string bytes = container.sealed();
  // After the size hint, the file has two keys of five bytes each, the end mark and the checksum.
  // The hint is limited to the number of keys that fit into these bytes.
  const uint64_t keys_max = (2 * 5 + 1 + 8) / 3;
  Hints hints;
  MemorySource source(bytes);
  ASSERT_TRUE(read_rdb(source, hints, core::UnlimitedMemory(), {}));
  EXPECT_EQ(hints.seen, fmt::format("0 2 1, 3 {0} {0}, ", keys_max));
}

TEST(RdbReader, RecordsWithoutKeysAreSkipped) {
  Container container;
  container.u8(rdb::kModuleAux);
  ModuleWriter module(container, module_id("RediSearc", 1));
  module.unsigned_number(2);  // the value 2 means that the record of the module follows the keys
  module.string("anything", Packing::kNever);
  module.end();
  container.u8(rdb::kAux);
  container.text("lua");
  container.text(std::string(2 << 20, '-'));
  container.u8(rdb::kSlotInfo);
  for (const uint64_t number : {1, 20000, 3}) container.length(number);
  container.u8(rdb::kKeyMetaOrSlotImport);
  container.length(1);
  container.u32(5);
  container.length(0);
  container.string_key("k", "v");
  Keyspace keyspace(4, kReaderHashSeed);
  const auto result = load(container.sealed(), keyspace);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(keyspace.db_size(0), 1U);

  Container valkey("VALKEY080");
  valkey.u8(rdb::kKeyMetaOrSlotImport);
  valkey.text(std::string(40, 'j'));
  valkey.length(1);
  for (const uint64_t number : {0, 16383}) valkey.length(number);
  valkey.string_key("k", "v");
  EXPECT_EQ(error_of(valkey.sealed()), "");
}

TEST(RdbReader, UnreadableRecordsAreReported) {
  const auto error_after = [](std::string_view bytes, std::string_view header = "REDIS0010") {
    Container container(header);
    container.bytes(bytes);
    return error_of(container.sealed(), skipping());
  };
  EXPECT_EQ(error_after("\xF6"), "offset 10: records of kind 246 cannot be read");
  EXPECT_EQ(error_after("\xF2", "VALKEY081"), "offset 10: records of kind 242 cannot be read");
  const auto unknown = [](int type, std::string_view name) {
    return fmt::format(
        "offset 12: values of type {} ({}) cannot be passed over: delete such keys in the server "
        "that has written them, and save again",
        type, name);
  };
  EXPECT_EQ(error_after("\x06\x01k"), unknown(6, "module of a release candidate"));
  EXPECT_EQ(error_after(std::string_view("\x08\x01k", 3)), unknown(8, "type 8"));
  EXPECT_EQ(error_after("\x22\x01k"), unknown(34, "type 34"));
  EXPECT_EQ(error_after("\x17\x01k", "VALKEY080"), unknown(23, "hash"));
  Container newer;
  newer.key(kModuleType, "k");
  ModuleWriter(newer, module_id("MBbloom--", 5)).end();
  EXPECT_EQ(error_of(newer.sealed(), skipping()),
            "offset 21: unknown module value 'MBbloom--' version 5");
}

TEST(RdbReader, AdviceToSkipIsGivenWhereSkippingWorks) {
  const auto refusal_of = [](std::string_view bytes, std::string_view header) {
    Container container(header);
    container.bytes(bytes);
    return error_of(container.sealed(), {});
  };
  EXPECT_THAT(refusal_of("\x1A\x01k", "REDIS0013"), HasSubstr("rdb-foreign-types skip"));
  EXPECT_THAT(refusal_of("\x06\x01k", "REDIS0013"), Not(HasSubstr("rdb-foreign-types")));
  EXPECT_THAT(refusal_of("\x17\x01k", "VALKEY081"), Not(HasSubstr("rdb-foreign-types")));
}

TEST(RdbReader, TemplateHashesAreSkipped) {
  Container container("REDIS0015");
  container.u8(rdb::kHashTemplateOrUpdate);
  container.length(7);  // id of a template, which gives hashes their field names
  container.length(2);  // number of field names in the template
  for (const char* field : {"age", "name"}) container.text(field);
  container.key(32, "hash");
  container.length(7);
  for (const char* value : {"42", "Ann"}) container.text(value);
  container.string_key("k", "v");
  EXPECT_EQ(error_of(container.sealed(), skipping()), "");
  Container without("REDIS0015");
  without.key(32, "hash");
  without.length(7);
  EXPECT_THAT(error_of(without.sealed(), skipping()), HasSubstr("template"));
}

TEST(RdbReader, VisitorErrorsAreReturnedWithTheOffset) {
  Container twice;
  twice.string_key("k", "1");
  twice.string_key("k", "2");
  EXPECT_EQ(error_of(twice.sealed()), "offset 19: a key of database 0 occurs twice");
  Container beyond;
  beyond.u8(rdb::kSelectDatabase);
  beyond.length(4);
  beyond.string_key("k", "v");
  EXPECT_EQ(error_of(beyond.sealed()), "offset 16: database 4 does not exist: `databases` is 4");
}

TEST(RdbReader, CheckFindsDuplicateKeys) {
  Container twice;
  twice.string_key("k", "1");
  twice.u8(rdb::kSelectDatabase);
  twice.length(1);
  twice.string_key("k", "elsewhere");
  twice.string_key("k", "2");
  const std::string bytes = twice.sealed();
  MemorySource source(bytes);
  const RdbSummary summary = check_rdb(source);
  ASSERT_TRUE(summary.error);
  EXPECT_NE(summary.error->message.find("a key of database 1 occurs twice"), std::string::npos);
}

TEST(RdbReader, ExpiredKeysAreDroppedWhenAsked) {
  Container container;
  container.u8(rdb::kExpiryMilliseconds);
  container.i64(1000);
  container.string_key("k", "v");
  const std::string bytes = container.sealed();
  for (const int64_t now_ms : {int64_t{1000}, int64_t{1001}, core::keyspace::kIgnoreExpiry}) {
    Keyspace keyspace(1, kReaderHashSeed);
    KeyspaceLoader loader(keyspace, now_ms, 77);
    MemorySource source(bytes);
    ASSERT_TRUE(read_rdb(source, loader, core::UnlimitedMemory(), {}));
    EXPECT_EQ(loader.expired_keys(), now_ms == 1001 ? 1U : 0U);
    EXPECT_EQ(keyspace.db_size(0), loader.loaded_keys());
    keyspace.for_each(0, [](const auto& entry) { EXPECT_EQ(entry.use_bits() >> 8, 77U); });
    EXPECT_EQ(loader.loaded_keys() + loader.expired_keys(), 1U);
  }
}

TEST(RdbReader, TrailingBytesAreAnErrorOrReturned) {
  const std::string bytes = small_file(true);
  EXPECT_EQ(error_of(bytes + "x"),
            fmt::format("offset {}: bytes follow the end of the snapshot", bytes.size()));
  RdbReadOptions options;
  options.may_be_followed = true;
  Keyspace keyspace(4, kReaderHashSeed);
  const auto result = load(bytes + "*1\r\n$4\r\nPING\r\n", keyspace, options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->total.bytes, bytes.size());
}

// Simulates a socket: the number of remaining bytes is unknown, each read returns at most 100
// bytes, and a read after the last byte fails.
class Socket final : public ByteSource {
 public:
  explicit Socket(std::string_view bytes) : rest_(bytes) {}
  core::Result<size_t> read(std::span<char> out) override {
    if (rest_.empty()) return core::Error{"ERR can't read: Connection reset by peer"};
    const size_t count = std::min({out.size(), rest_.size(), size_t{100}});
    std::ranges::copy(rest_.substr(0, count), out.begin());
    rest_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view rest_;
};

TEST(RdbReader, SocketsAreNotReadPastTheEnd) {
  const std::string bytes = small_file(true);
  Keyspace from_memory(4, kReaderHashSeed);
  ASSERT_TRUE(load(bytes, from_memory));
  for (const size_t size : {bytes.size(), bytes.size() / 2, size_t{1}}) {
    Socket socket(std::string_view(bytes).substr(0, size));
    Keyspace keyspace(4, kReaderHashSeed);
    KeyspaceLoader loader(keyspace, core::keyspace::kIgnoreExpiry);
    RdbReadOptions options;
    options.may_be_followed = true;
    const auto result = read_rdb(socket, loader, core::UnlimitedMemory(), options);
    if (size == bytes.size()) {
      ASSERT_TRUE(result) << result.error().message;
      EXPECT_EQ(contents(keyspace), contents(from_memory));
    } else {
      ASSERT_FALSE(result);
      EXPECT_TRUE(result.error().message.ends_with("can't read: Connection reset by peer"));
    }
  }
}

TEST(RdbReader, BudgetIsCheckedBeforeAllocating) {
  const support::Budget megabyte(1 << 20);
  // The number of bytes that a socket will deliver is unknown. So only the memory budget limits the
  // size that a value announces.
  const auto refused = [&](std::string_view bytes) {
    Socket socket(bytes);
    Keyspace keyspace(1, kReaderHashSeed);
    KeyspaceLoader loader(keyspace, core::keyspace::kIgnoreExpiry);
    const auto result = read_rdb(socket, loader, megabyte, {});
    return result ? "" : result.error().message;
  };
  for (const uint64_t size : {uint64_t{2} << 20, uint64_t{1} << 40, uint64_t{1} << 63}) {
    std::string value;
    ByteWriter(value).length(size);
    EXPECT_TRUE(refused("REDIS0010" + std::string("\0\1k", 3) + value).ends_with(kValueDoesNotFit));
    const std::string name_error = refused("REDIS0010" + std::string("\0", 1) + value);
    EXPECT_TRUE(name_error.ends_with(kValueDoesNotFit) || name_error.ends_with(kKeyNameTooLong))
        << name_error;
  }
  Container big;
  const auto parameters = filters::parameters_of(filters::NativeLayout::kId, 0.01, 2000000, 2);
  big.key(kModuleType, "k");
  encode_filter(big, *filters::make(parameters, "", 0), Packing::kNever);
  EXPECT_TRUE(refused(big.sealed()).ends_with(kValueDoesNotFit));
}

TEST(RdbReader, LengthBeyondTheFileIsRejectedAtOnce) {
  std::string bytes("REDIS0010\0\1k", 12);
  ByteWriter(bytes).length(uint64_t{1} << 36);
  EXPECT_EQ(error_of(bytes + "abc"), "offset 21: a string is longer than the remaining bytes");
}

TEST(RdbReader, EveryTruncationIsAnError) {
  for (const bool has_sum : {false, true}) {
    const std::string bytes = small_file(has_sum);
    EXPECT_EQ(error_of(bytes), "");
    for (size_t size = 0; size < bytes.size(); ++size) {
      const std::string error = error_of(std::string_view(bytes).substr(0, size));
      EXPECT_TRUE(error.starts_with("offset ")) << size << ": " << error;
    }
  }
}

TEST(RdbReader, FlippedBitsAreErrorsOrChangeNothing) {
  constexpr uint64_t kSeed = 2024;
  constexpr int kFlips = 2000;
  const std::string bytes = small_file(true);
  Keyspace original(4, kReaderHashSeed);
  ASSERT_TRUE(load(bytes, original));
  std::mt19937_64 random(kSeed);
  int refused = 0;
  for (int i = 0; i < kFlips; ++i) {
    std::string damaged = bytes;
    const uint64_t bit = random() % (8 * bytes.size());
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    Keyspace keyspace(4, kReaderHashSeed);
    const auto result = load(damaged, keyspace, skipping(), support::Budget(64 << 20));
    refused += !result;
    if (result) {
      EXPECT_EQ(contents(keyspace), contents(original)) << "seed " << kSeed << " flip " << i;
    }
  }
  EXPECT_EQ(refused, kFlips);
}

// Without a checksum, the reader may accept damaged bytes. It must neither crash nor exceed its
// memory budget.
TEST(RdbReader, FlippedBytesWithoutAChecksumAreHarmless) {
  constexpr uint64_t kSeed = 2025;
  constexpr int kFlips = support::rounds(20000, 2000);
  const std::string bytes = small_file(false);
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < kFlips; ++i) {
    std::string damaged = bytes;
    damaged[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
    Keyspace keyspace(4, kReaderHashSeed);
    const auto result = load(damaged, keyspace, skipping(), support::Budget(64 << 20));
    if (!result) continue;
    std::string again;
    StringSink sink(again);
    ASSERT_TRUE(write_rdb(sink, keyspace, {}));
    ASSERT_EQ(error_of(again), "") << "seed " << kSeed << " flip " << i;
  }
}

}  // namespace
}  // namespace persistence
