// SPDX-License-Identifier: MIT
#include "server/replication/replica/snapshot_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/bloom/arrays/bit_array.h"
#include "core/keyspace/keyspace.h"
#include "persistence/rdb/rdb_writer.h"
#include "tests/support/filters.h"
#include "tests/support/snapshots.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

using core::keyspace::Keyspace;

class SnapshotCheckTest : public ::testing::Test {
 protected:
  void put(std::string_view bytes) {
    auto file = disk_.open_append("received", persistence::OpenMode::kCreate);
    ASSERT_TRUE((*file)->write(bytes));
  }
  std::string error(const SnapshotCheck& check = {}) {
    const auto facts = check_snapshot(disk_, "received", check);
    return facts ? "" : facts.error().message;
  }
  // Returns a snapshot with ten keys, in the form that a leader sends.
  std::string written(const persistence::RdbWriteOptions& options = {}) {
    Keyspace keyspace(4, 1);
    for (int i = 0; i < 10; ++i) {
      const std::string name = "key" + std::to_string(i);
      const auto key = keyspace.ref(name);
      EXPECT_TRUE(keyspace.insert(3, key).set_string(std::string(5000, 'v')));
    }
    std::string bytes;
    persistence::StringSink sink(bytes);
    EXPECT_TRUE(persistence::write_rdb(sink, keyspace, options));
    return bytes;
  }
  static SnapshotCheck passing_over() {
    SnapshotCheck check;
    check.loaded_bytes_max = 0;
    return check;
  }

  virtual_disk::VirtualDisk disk_;
};

TEST_F(SnapshotCheckTest, ASoundOneTellsWhoseStreamFollows) {
  persistence::RdbWriteOptions options;
  options.replication = {2, std::string(40, 'a'), 77, false};
  put(written(options));
  for (const SnapshotCheck& check : {SnapshotCheck(), passing_over()}) {
    const auto facts = check_snapshot(disk_, "received", check);
    ASSERT_TRUE(facts) << facts.error().message;
    EXPECT_TRUE(facts->has_own_stream);
    EXPECT_EQ(facts->stream_database, 2);
  }
  options.replication->is_foreign = true;
  put(written(options));
  EXPECT_FALSE(check_snapshot(disk_, "received", {})->has_own_stream);
}

TEST_F(SnapshotCheckTest, AnotherServersStreamIsForeign) {
  snapshots::Container container;
  put(container.sealed());
  const auto facts = check_snapshot(disk_, "received", {});
  ASSERT_TRUE(facts);
  EXPECT_FALSE(facts->has_own_stream);
  EXPECT_EQ(facts->stream_database, 0);
}

TEST_F(SnapshotCheckTest, EveryCutAndEveryFlippedBitIsFound) {
  const std::string bytes = written();
  for (const SnapshotCheck& check : {SnapshotCheck(), passing_over()}) {
    for (size_t size = 0; size < bytes.size(); size += 1 + size / 50) {
      put(bytes.substr(0, size));
      EXPECT_NE(error(check), "") << "cut to " << size;
    }
    for (size_t at = 0; at < bytes.size(); at += 1 + at / 50) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 4);
      put(damaged);
      EXPECT_NE(error(check), "") << "flipped at " << at;
    }
    put(bytes + "x");
    EXPECT_NE(error(check), "");
  }
}

TEST_F(SnapshotCheckTest, ADatabaseTooManyIsRefused) {
  put(written());
  SnapshotCheck check;
  check.database_count = 3;
  EXPECT_NE(error(check).find("no database 3"), std::string::npos);
  check.loaded_bytes_max = 0;
  EXPECT_NE(error(check).find("no database 3"), std::string::npos);
}

TEST_F(SnapshotCheckTest, ForeignTypesAreRefusedOrPassedOver) {
  snapshots::Container container;
  container.key(1, "list");
  container.length(1);
  container.text("element");
  put(container.sealed());
  for (SnapshotCheck check : {SnapshotCheck(), passing_over()}) {
    EXPECT_NE(error(check).find("list"), std::string::npos);
    check.skips_foreign_types = true;
    EXPECT_EQ(error(check), "");
  }
}

TEST_F(SnapshotCheckTest, AKeyTwiceIsRefused) {
  snapshots::Container container;
  container.string_key("a", "1");
  container.string_key("a", "2");
  put(container.sealed());
  EXPECT_NE(error().find("twice"), std::string::npos);
}

TEST_F(SnapshotCheckTest, BigValuesArePassedOverWithoutTakingMemory) {
  Keyspace keyspace(1, 1);
  const std::string big(size_t{8} << 20, 'b');
  ASSERT_TRUE(keyspace.insert(0, keyspace.ref("big")).set_string(big));
  std::string bytes;
  persistence::StringSink sink(bytes);
  persistence::RdbWriteOptions options;
  options.compresses = false;
  ASSERT_TRUE(persistence::write_rdb(sink, keyspace, options));
  put(bytes);
  int pieces = 0;
  SnapshotCheck check = passing_over();
  check.on_piece = [&] { ++pieces; };
  EXPECT_EQ(error(check), "");
  EXPECT_GT(pieces, 16) << "it came in by pieces";
}

// A snapshot stores only those cache lines of an array in which bits are set. After loading, each
// such cache line uses a whole page of memory.
TEST_F(SnapshotCheckTest, SkipsAFilterMuchLargerThanItsFile) {
  constexpr uint64_t kTakenMax = uint64_t{8} << 20;
  Keyspace keyspace(1, 1);
  keyspace.insert(0, keyspace.ref("sparse"))
      .set_filter(filters::make(
          filters::parameters(core::bloom::NativeLayout::kId, 20'000'000, 0.01), "item", 20'000));
  std::string bytes;
  persistence::StringSink sink(bytes);
  ASSERT_TRUE(persistence::write_rdb(sink, keyspace, {}));
  put(bytes);
  SnapshotCheck check;
  check.loaded_bytes_max = kTakenMax;
  ASSERT_LT(bytes.size(), kTakenMax);
  const uint64_t reserved_before = core::bloom::mapped_bytes();
  uint64_t reserved_most = 0;
  check.on_piece = [&] {
    reserved_most = std::max(reserved_most, core::bloom::mapped_bytes() - reserved_before);
  };
  EXPECT_EQ(error(check), "");
  EXPECT_LT(reserved_most, kTakenMax);
}

}  // namespace
}  // namespace server
