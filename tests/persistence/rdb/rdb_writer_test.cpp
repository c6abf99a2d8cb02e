// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "core/keyspace/key_use.h"
#include "core/keyspace/keyspace.h"
#include "persistence/rdb/rdb_loader.h"
#include "tests/support/error_matcher.h"
#include "tests/support/filter_forms.h"
#include "tests/support/filters.h"
#include "tests/support/snapshots.h"
#include "tests/support/upsert.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using core::keyspace::Keyspace;
using filters::parameters_of;
using snapshots::contents;

constexpr unsigned kWriterDatabases = 5;
constexpr uint64_t kWriterHashSeed = 7;

std::string random_text(std::mt19937_64& random) {
  const size_t size = random() % (random() % 8 == 0 ? 5000 : 60);
  const unsigned alphabet = random() % 2 == 0 ? 256 : 2;
  std::string text;
  for (size_t i = 0; i < size; ++i) text.push_back(static_cast<char>('0' + random() % alphabet));
  return text;
}

std::string random_string_value(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return std::to_string(static_cast<int64_t>(random()) >> random() % 64);
    case 1:
      return "0" + std::to_string(random() % 100);
    default:
      return random_text(random);
  }
}

std::unique_ptr<core::bloom::ScalableFilter> random_filter(std::mt19937_64& random) {
  auto parameters =
      parameters_of(filters::kLayouts[random() % 3], random() % 2 == 0 ? 0.01 : 0.0003,
                    1 + random() % 100, static_cast<uint32_t>(random() % 4));
  parameters.rounds_to_power_of_two = random() % 4 == 0;
  parameters.hashes_32_bits = random() % 4 == 0;
  if (random() % 3 == 0) parameters.seed[random() % 32] ^= 1;
  return filters::make(parameters, "item", static_cast<int>(random() % 300));
}

void fill(Keyspace& keyspace, uint64_t seed, int keys) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < keys; ++i) {
    const auto database = static_cast<unsigned>(random() % (kWriterDatabases - 1));
    const std::string name = random() % 10 == 0 ? std::to_string(i) : random_text(random);
    const auto key = keyspace.ref(name);
    auto& entry = core::keyspace::upsert(keyspace, database, key, core::keyspace::kIgnoreExpiry);
    if (random() % 3 == 0) {
      entry.set_filter(random_filter(random));
    } else {
      ASSERT_TRUE(entry.set_string(random_string_value(random)));
    }
    if (random() % 3 == 0) {
      keyspace.set_expiry(database, key, entry,
                          static_cast<int64_t>(random() >> (1 + random() % 60)));
    }
  }
}

std::string written(const Keyspace& keyspace, const RdbWriteOptions& options) {
  std::string bytes;
  StringSink sink(bytes);
  const auto total = write_rdb(sink, keyspace, options);
  EXPECT_TRUE(total) << total.error().message;
  EXPECT_EQ(total->bytes, bytes.size());
  return bytes;
}

TEST(RdbWriter, KeyspacesSurviveARoundTrip) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Keyspace keyspace(kWriterDatabases, kWriterHashSeed);
    fill(keyspace, seed, 100);
    RdbWriteOptions options;
    options.compresses = seed % 2 == 0;
    options.has_sum = seed % 3 != 0;
    options.buffer_bytes = seed % 5 == 0 ? 10 : size_t{64} << 10;
    const std::string bytes = written(keyspace, options);
    Keyspace loaded(kWriterDatabases, kWriterHashSeed + 1);
    RdbReadOptions read_options;
    read_options.buffer_bytes = seed % 7 == 0 ? 16 : 5000;
    const auto result = snapshots::load(bytes, loaded, read_options);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->version, 10U);
    EXPECT_EQ(result->has_sum, options.has_sum);
    EXPECT_EQ(result->total.bytes, bytes.size());
    EXPECT_EQ(contents(loaded), contents(keyspace));
    for (unsigned database = 0; database < kWriterDatabases; ++database) {
      EXPECT_EQ(loaded.db_size(database), keyspace.db_size(database));
      EXPECT_EQ(loaded.expires_count(database), keyspace.expires_count(database));
    }
  }
}

TEST(RdbWriter, UsesAreWrittenForThePolicy) {
  using core::keyspace::KeyUse;
  constexpr uint32_t kNowS = 5000;
  Keyspace keyspace(1, kWriterHashSeed);
  const auto key = keyspace.ref("k");
  {
    const auto lock = keyspace.lock_exclusive(key);
    keyspace.insert(0, key).set_use_bits(KeyUse::idle_for(130, kNowS, 77).bits());
  }
  for (const auto& [use, idle_s, count] :
       {std::tuple(WrittenUse::kNone, 0, 5), std::tuple(WrittenUse::kIdleTime, 130, 5),
        std::tuple(WrittenUse::kFrequency, 0, 75)}) {
    RdbWriteOptions options;
    options.use = use;
    options.access_clock_s = kNowS;
    const std::string bytes = written(keyspace, options);
    Keyspace loaded(1, kWriterHashSeed);
    constexpr uint32_t kLoadedAtS = 9000;
    KeyspaceLoader loader(loaded, 0, kLoadedAtS);
    MemorySource source(bytes);
    ASSERT_TRUE(read_rdb(source, loader, core::UnlimitedMemory(), {}));
    const KeyUse read(*loaded.find_any(0, key));
    EXPECT_EQ(read.idle_s(kLoadedAtS), static_cast<uint32_t>(idle_s));
    EXPECT_EQ(read.stored_count(), count);
  }
}

TEST(RdbWriter, AuxFieldsAreInRedisOrder) {
  Keyspace keyspace(1, kWriterHashSeed);
  RdbWriteOptions options;
  options.server_version = "7.4.1";
  options.created_at_s = 1700000000;
  options.used_memory_bytes = 12345;
  options.is_aof_base = true;
  options.replication = {3, std::string(40, 'a'), 99};
  snapshots::Container expected;
  const auto aux = [&](std::string_view name, std::string_view value) {
    expected.u8(rdb::kAux);
    expected.string(name, Packing::kIfSmaller);
    expected.string(value, Packing::kIfSmaller);
  };
  aux("redis-ver", "7.4.1");
  aux("redis-bits", "64");
  aux("ctime", "1700000000");
  aux("used-mem", "12345");
  aux("repl-stream-db", "3");
  aux("repl-id", std::string(40, 'a'));
  aux("repl-offset", "99");
  aux("aof-base", "1");
  aux("bloomery-ver", BLOOMERY_VERSION);
  EXPECT_EQ(written(keyspace, options), expected.sealed());
}

TEST(RdbWriter, WithoutAChecksumTheFileEndsInZeros) {
  Keyspace keyspace(1, kWriterHashSeed);
  RdbWriteOptions options;
  options.has_sum = false;
  EXPECT_TRUE(written(keyspace, options).ends_with("\xFF" + std::string(8, '\0')));
}

TEST(RdbWriter, OnlyDatabasesWithKeysAreWritten) {
  Keyspace keyspace(16, kWriterHashSeed);
  ASSERT_TRUE(keyspace.insert(9, keyspace.ref("k")).set_string("v"));
  auto& entry = keyspace.insert(9, keyspace.ref("t"));
  keyspace.set_expiry(9, keyspace.ref("t"), entry, 1000);
  const std::string bytes = written(keyspace, {});
  EXPECT_NE(bytes.find("\xFE\x09\xFB\x02\x01"), std::string::npos);
  EXPECT_EQ(std::ranges::count(bytes, '\xFE'), 1);
}

// A sink that counts the pieces written to it. After `writes` pieces, all writes fail.
class LimitedSink final : public ByteSink {
 public:
  explicit LimitedSink(int writes) : left_(writes) {}
  core::Result<> write(std::string_view bytes) override {
    ++pieces;
    longest = std::max(longest, bytes.size());
    if (left_-- <= 0) return core::Error{"ERR can't write: No space left on device"};
    return {};
  }
  int pieces = 0;
  size_t longest = 0;

 private:
  int left_;
};

TEST(RdbWriter, OnlyTemporarySnapshotsAreRemoved) {
  virtual_disk::VirtualDisk disk;
  const std::string mine = temporary_snapshot_name(12);
  for (const std::string& name : {mine, std::string("temp-7.rdb")}) disk.put("./" + name, "part");
  const std::vector<std::string> others = {"dump.rdb", "temp-.rdb", "temp-8.rdb", "temp-x.rdb"};
  for (const std::string& name : others) disk.put("./" + name, "whole");
  for (const std::string name : {"temp-7.rdb", "temp-8.rdb", "temp-7-received.rdb"}) {
    EXPECT_TRUE(is_temporary_snapshot_name(name)) << name;
  }
  for (const std::string name : {"dump.rdb", "temp-.rdb", "temp-x.rdb"}) {
    EXPECT_FALSE(is_temporary_snapshot_name(name)) << name;
  }
  const auto removed = remove_temporary_snapshots(disk, ".", "temp-8.rdb");
  ASSERT_TRUE(removed);
  EXPECT_EQ(*removed, (std::vector<std::string>{"./" + mine, "./temp-7.rdb"}));
  EXPECT_EQ(*disk.list("."), others);
}

TEST(RdbWriter, AnyFailedWriteIsReported) {
  Keyspace keyspace(kWriterDatabases, kWriterHashSeed);
  fill(keyspace, 3, 100);
  RdbWriteOptions options;
  options.buffer_bytes = 500;
  LimitedSink whole(1 << 30);
  ASSERT_TRUE(write_rdb(whole, keyspace, options));
  EXPECT_GT(whole.pieces, 50);
  EXPECT_EQ(whole.longest, 500U);
  for (int n = 0; n < whole.pieces; ++n) {
    LimitedSink sink(n);
    const auto result = write_rdb(sink, keyspace, options);
    ASSERT_FALSE(result) << n;
    EXPECT_EQ(result.error().message, "ERR can't write: No space left on device");
    EXPECT_EQ(sink.pieces, n + 1) << "the sink is written to after an error";
  }
}

TEST(RdbWriter, ProgressIsReportedPerPiece) {
  Keyspace keyspace(1, kWriterHashSeed);
  fill(keyspace, 0, 0);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(keyspace.insert(0, keyspace.ref(std::to_string(i))).set_string("value"));
  }
  std::vector<RdbProgress> reported;
  RdbWriteOptions options;
  options.buffer_bytes = 1000;
  options.on_progress = [&](const RdbProgress& progress) { reported.push_back(progress); };
  const std::string bytes = written(keyspace, options);
  ASSERT_GT(reported.size(), 5U);
  for (size_t i = 1; i < reported.size(); ++i) {
    EXPECT_GT(reported[i].bytes, reported[i - 1].bytes);
    EXPECT_GE(reported[i].keys, reported[i - 1].keys);
  }
  EXPECT_EQ(reported.back().bytes, bytes.size());
  EXPECT_EQ(reported.back().keys, 1000U);
}

// Sets bits of a filter while the filter is being written. Clients of a server may do the same to a
// big array while a child process saves the array.
class BusySink final : public ByteSink {
 public:
  BusySink(std::string& out, core::bloom::ScalableFilter& filter) : out_(out), filter_(filter) {}
  core::Result<> write(std::string_view bytes) override {
    out_.append(bytes);
    const auto array = filter_.mutable_layer_bits(0).bytes();
    for (int i = 0; i < 5000; ++i) array[random_() % array.size()] |= std::byte{0x10};
    return {};
  }

 private:
  std::string& out_;
  core::bloom::ScalableFilter& filter_;
  std::mt19937_64 random_{kWriterHashSeed};
};

TEST(RdbWriter, BitsMayBeSetWhileTheyAreWritten) {
  constexpr int kItems = 20000;
  for (const auto layout : filters::kLayouts) {
    // Layouts that clear bits are skipped, because a saving child process has private copies of
    // their arrays. So no bit is set while the child writes such an array.
    if (core::bloom::layout_row(layout).clears_bits) continue;
    Keyspace keyspace(1, kWriterHashSeed);
    const auto parameters = parameters_of(layout, 0.01, 2000000, 2);
    auto& entry = keyspace.insert(0, keyspace.ref("big"));
    entry.set_filter(filters::make(parameters, "item", kItems));
    ASSERT_GE(entry.filter().layer_bits(0).bytes().size(), core::bloom::BitArray::kMappedBytes);
    std::string bytes;
    BusySink sink(bytes, entry.filter());
    RdbWriteOptions options;
    options.buffer_bytes = size_t{64} << 10;
    ASSERT_TRUE(write_rdb(sink, keyspace, options));
    Keyspace loaded(1, kWriterHashSeed);
    const auto result = snapshots::load(bytes, loaded);
    ASSERT_TRUE(result) << result.error().message;
    const auto& filter = loaded.find_any(0, loaded.ref("big"))->filter();
    EXPECT_EQ(filter.item_count(), static_cast<uint64_t>(kItems));
    for (int i = 0; i < kItems; ++i) ASSERT_TRUE(filter.may_contain(fmt::format("item:{}", i)));
  }
}

// Returns the size of a snapshot that has one empty filter with this capacity, and the size of the
// filter's array.
std::pair<size_t, size_t> sizes_of(core::bloom::LayoutId layout, uint64_t capacity) {
  Keyspace keyspace(1, kWriterHashSeed);
  auto& entry = keyspace.insert(0, keyspace.ref("f"));
  entry.set_filter(filters::make(parameters_of(layout, 0.01, capacity, 2), "", 0));
  return {written(keyspace, {}).size(), entry.filter().layer_bits(0).bytes().size()};
}

TEST(RdbWriter, SharedArraysAreNeverPacked) {
  constexpr size_t kShared = core::bloom::BitArray::kMappedBytes;
  for (const auto layout : filters::kLayouts) {
    const auto [private_file, private_array] = sizes_of(layout, 400000);
    EXPECT_LT(private_array, kShared);
    EXPECT_LT(private_file, private_array / 50);
    const auto [shared_file, shared_array] = sizes_of(layout, 2000000);
    EXPECT_GE(shared_array, kShared);
    if (filter_forms::is_stored_as_runs(layout)) {
      EXPECT_LT(shared_file, 1000U);  // a big shared array is stored without its zeros
    } else {
      EXPECT_GT(shared_file, shared_array);
    }
  }
  // This array has slightly fewer bytes than the smallest shared array. But its memory is rounded
  // up to whole 64-bit words, so it is shared. Shared arrays are not compressed.
  const auto [file, array] = sizes_of(core::bloom::ValkeyBloomLayout::kId, 875173);
  EXPECT_LT(array, kShared);
  EXPECT_GT(array, kShared - sizeof(uint64_t));
  EXPECT_GT(file, array);
}

const RdbPlace kPlace = {"dir/dump.rdb", "dir/temp-1.rdb"};

// Tests saving to a simulated disk, on which a snapshot with other data exists already.
class SaveRdbTest : public testing::Test {
 protected:
  void SetUp() override {
    fill(old_, 4, 20);
    fill(new_, 5, 50);
    disk_.add_directory("dir");
    disk_.put(kPlace.path, written(old_, {}));
    options_.buffer_bytes = 1000;
  }
  auto save() { return save_rdb(disk_, kPlace, new_, options_); }
  snapshots::Contents content_of_disk() const {
    Keyspace loaded(kWriterDatabases, kWriterHashSeed);
    const auto bytes = disk_.content(kPlace.path);
    EXPECT_TRUE(bytes);
    const auto result = snapshots::load(bytes.value_or(""), loaded);
    EXPECT_TRUE(result) << result.error().message;
    return contents(loaded);
  }

  virtual_disk::VirtualDisk disk_{kWriterHashSeed};
  Keyspace old_{kWriterDatabases, kWriterHashSeed};
  Keyspace new_{kWriterDatabases, kWriterHashSeed};
  RdbWriteOptions options_;
};

TEST_F(SaveRdbTest, SavedSnapshotSurvivesAPowerCut) {
  const auto saved = save();
  ASSERT_TRUE(saved) << saved.error().message;
  disk_.cut_power(virtual_disk::Unsynced::kLost);
  EXPECT_EQ(disk_.content(kPlace.path)->size(), saved->bytes);
  EXPECT_EQ(content_of_disk(), contents(new_));
  EXPECT_EQ(disk_.list("dir")->size(), 1U);
}

TEST_F(SaveRdbTest, AnyFailureLeavesTheOldOrTheNewFile) {
  ASSERT_TRUE(save());
  const uint64_t operations = disk_.operation_count();
  ASSERT_GT(operations, 10U);
  for (uint64_t failing = 1; failing <= operations; ++failing) {
    disk_.put(kPlace.path, written(old_, {}));
    disk_.restart_count();
    disk_.fail_operation(failing);
    EXPECT_FALSE(save()) << failing;
    // Only the last operation, the sync of the directory, happens after the new file has replaced
    // the old file.
    EXPECT_EQ(content_of_disk(), contents(failing == operations ? new_ : old_)) << failing;
    disk_.restart_count();
    EXPECT_EQ(disk_.list("dir")->size(), 1U) << "a temporary file is left";
  }
}

TEST_F(SaveRdbTest, AnyPowerCutLeavesTheOldOrTheNewFile) {
  ASSERT_TRUE(save());
  const uint64_t operations = disk_.operation_count();
  using virtual_disk::Unsynced;
  for (const auto unsynced : {Unsynced::kLost, Unsynced::kKept, Unsynced::kPartial}) {
    for (uint64_t failing = 1; failing <= operations; ++failing) {
      disk_.put(kPlace.path, written(old_, {}));
      disk_.restart_count();
      disk_.fail_from_operation(failing);
      EXPECT_FALSE(save());
      disk_.cut_power(unsynced);
      const auto found = content_of_disk();
      EXPECT_TRUE(found == contents(old_) || found == contents(new_)) << failing;
    }
  }
}

TEST_F(SaveRdbTest, ExhaustedMemoryIsAnError) {
  options_.on_progress = [](const RdbProgress&) { throw std::bad_alloc(); };
  const auto saved = save();
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message, is_error("OOM", "snapshot"));
  EXPECT_EQ(content_of_disk(), contents(old_));
  EXPECT_EQ(disk_.list("dir")->size(), 1U);
}

}  // namespace
}  // namespace persistence
