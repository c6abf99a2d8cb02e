// SPDX-License-Identifier: MIT
//
// Tests the export of a snapshot to other servers: which keys are copied for each kind of server,
// and how skipped keys are reported. Also tests which files remain after an error.
#include "persistence/rdb/rdb_export.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "core/bloom/layouts.h"
#include "core/memory/memory_budget.h"
#include "persistence/filters/filter_chunks.h"
#include "tests/support/error_matcher.h"
#include "tests/support/filters.h"
#include "tests/support/snapshots.h"
#include "tests/support/upsert.h"
#include "tests/support/vectors.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using core::keyspace::Keyspace;
using filters::LayoutId;
using snapshots::Contents;
using virtual_disk::Unsynced;
using virtual_disk::VirtualDisk;

class RdbExportTest : public testing::Test {
 protected:
  RdbExportTest() {
    disk_.add_directory("/data");
    request_.source = "/data/dump.rdb";
    request_.place = {"/data/out.rdb", "/data/temp-1.rdb"};
  }

  void add_filter(unsigned database, const std::string& name, LayoutId layout,
                  bool has_window = false) {
    auto parameters = filters::parameters(layout, 100, 0.01);
    if (has_window)
      parameters.window = {.length = 10, .unit = core::bloom::WindowUnit::kItems, .generations = 3};
    const auto key = source_.ref(name);
    core::keyspace::upsert(source_, database, key, core::keyspace::kIgnoreExpiry)
        .set_filter(filters::make(parameters, "item", 20));
  }
  void add_string(unsigned database, const std::string& name, int64_t expires_at_ms = 0) {
    const auto key = source_.ref(name);
    auto& entry = core::keyspace::upsert(source_, database, key, core::keyspace::kIgnoreExpiry);
    ASSERT_TRUE(entry.set_string("of " + name));
    if (expires_at_ms != 0) source_.set_expiry(database, key, entry, expires_at_ms);
  }
  // Adds one value of every kind.
  void fill() {
    add_string(0, "plain");
    add_string(2, "brief", 5000);
    for (const auto& row : core::bloom::kLayoutRows) {
      add_filter(0, fmt::format("f:{}", row.name), row.id);
    }
    add_filter(2, "second", filters::RedisBloomLayout::kRow.id);
    add_filter(2, "windowed", core::bloom::kNativeLayout, true);
    save();
  }
  void save() {
    std::string bytes;
    StringSink sink(bytes);
    ASSERT_TRUE(write_rdb(sink, source_, {}));
    disk_.put("/data/dump.rdb", bytes);
  }
  std::string content() { return disk_.content("/data/out.rdb").value_or(""); }
  Contents exported() {
    Keyspace keyspace(16, 1);
    const auto loaded = snapshots::load(content(), keyspace);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return snapshots::contents(keyspace);
  }
  std::vector<std::string> names() { return *disk_.list("/data"); }

  Keyspace source_{16, 1};
  VirtualDisk disk_;
  ExportRequest request_;
};

TEST_F(RdbExportTest, EachTargetGetsItsSupportedTypes) {
  fill();
  const auto all = snapshots::contents(source_);
  for (const auto& [name, filter_count] :
       {std::pair{"redis", 0U}, {"redisbloom", 2U}, {"valkey-bloom", 1U}}) {
    SCOPED_TRACE(name);
    request_.target = parse_export_target(name);
    ASSERT_TRUE(request_.target);
    EXPECT_EQ(export_target_name(*request_.target), name);
    const auto done = export_rdb(disk_, request_);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->string_count, 2U);
    EXPECT_EQ(done->filter_count, filter_count);
    EXPECT_EQ(done->database_max, 2U);
    EXPECT_EQ(done->file_bytes, content().size());
    const Contents kept = exported();
    uint64_t left_out = 0;
    for (const auto& [kind, lost] : done->left_out) left_out += lost.count;
    EXPECT_EQ(kept.size(), 2 + filter_count);
    EXPECT_EQ(kept.size() + left_out, all.size());
    for (const auto& [place, value] : kept) EXPECT_EQ(all.at(place), value) << place.second;
    EXPECT_EQ(done->left_out.at("native filter").names, std::vector<std::string>{"f:native"});
    EXPECT_EQ(done->left_out.at("native filter with a window").names,
              std::vector<std::string>{"windowed (db 2)"});
    request_.may_replace = true;
  }
}

TEST_F(RdbExportTest, TargetIsTheModuleOfMostFilters) {
  save();
  EXPECT_EQ(export_rdb(disk_, request_)->target, ExportTarget::kRedis);
  request_.may_replace = true;
  add_filter(0, "a", filters::ValkeyBloomLayout::kRow.id);
  save();
  EXPECT_EQ(export_rdb(disk_, request_)->target, ExportTarget::kValkeyBloom);
  add_filter(0, "b", filters::RedisBloomLayout::kRow.id);
  add_filter(1, "c", filters::RedisBloomLayout::kRow.id);
  save();
  const auto done = export_rdb(disk_, request_);
  EXPECT_EQ(done->target, ExportTarget::kRedisBloom);
  EXPECT_TRUE(done->replaced);
  EXPECT_EQ(done->left_out.at("valkey-bloom filter").count, 1U);
}

TEST_F(RdbExportTest, ReportNamesAFewAndCountsAll) {
  for (int i = 0; i < 9; ++i) {
    add_filter(0, fmt::format("line\n{}", i), core::bloom::kNativeLayout);
  }
  save();
  const auto done = export_rdb(disk_, request_);
  ASSERT_TRUE(done);
  const LeftOut& lost = done->left_out.at("native filter");
  EXPECT_EQ(lost.count, 9U);
  ASSERT_EQ(lost.names.size(), kNamesShownMax);
  EXPECT_TRUE(lost.names[0].starts_with("line\\n")) << lost.names[0];
}

TEST_F(RdbExportTest, ValuesEqualThoseOfTheirOwnServers) {
  for (const std::string writer : {"redisbloom", "valkey-bloom"}) {
    SCOPED_TRACE(writer);
    disk_.put("/data/dump.rdb", vectors::read(writer + "/dump.rdb"));
    request_.may_replace = true;
    const auto done = export_rdb(disk_, request_);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(export_target_name(done->target), writer);
    EXPECT_TRUE(done->left_out.empty());
    const std::string bytes = content();
    size_t compared = 0;
    for (const auto& file : std::filesystem::directory_iterator(vectors::path(writer + "/dump"))) {
      const std::string payload =
          vectors::read(fmt::format("{}/dump/{}", writer, file.path().filename().string()));
      constexpr size_t kFooterBytes = 10;
      const std::string value = payload.substr(1, payload.size() - 1 - kFooterBytes);
      EXPECT_NE(bytes.find(value), std::string::npos) << file.path();
      ++compared;
    }
    EXPECT_GT(compared, 15U);
  }
}

// RedisBloom 2.8.20 ends at a file that contains such a filter.
TEST_F(RdbExportTest, FiltersOfOldRedisBloomAreLeftOut) {
  add_filter(0, "new", filters::RedisBloomLayout::kRow.id);
  add_filter(0, "old", filters::RedisBloomLayout::kRow.id);
  auto& entry = *source_.find_any(0, source_.ref("old"));
  std::string header = encode_chunk_header(entry.filter());
  constexpr size_t kBitCountAt = 28;
  const uint64_t bit_count = entry.filter().layer_info(0).geometry.bit_count;
  ASSERT_EQ(bit_count, 1152U);
  // The capacity times the bits per item, which RedisBloom before 2.2 did not round up.
  std::string unrounded;
  ByteWriter(unrounded).u64(1102);
  header.replace(kBitCountAt, unrounded.size(), unrounded);
  auto old = decode_chunk_header(header, core::UnlimitedMemory());
  ASSERT_TRUE(old) << old.error().message;
  entry.set_filter(std::move(*old));
  save();
  const auto done = export_rdb(disk_, request_);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->target, ExportTarget::kRedisBloom);
  EXPECT_EQ(done->filter_count, 1U);
  EXPECT_EQ(done->left_out.at("redisbloom filter from before RedisBloom 2.2").names,
            std::vector<std::string>{"old"});
  EXPECT_EQ(exported().size(), 1U);
}

TEST_F(RdbExportTest, ForeignTypesAreCounted) {
  disk_.put("/data/dump.rdb", vectors::read("redisbloom/mixed-types.rdb"));
  const auto done = export_rdb(disk_, request_);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->left_out.at("hash").count, 2U);
  EXPECT_EQ(done->left_out.at("module CMSk-TYPE").count, 1U);
  EXPECT_EQ(exported().size(), 4U);
}

TEST_F(RdbExportTest, DamageIsReportedAndLeavesNoFile) {
  fill();
  const std::string whole = *disk_.content("/data/dump.rdb");
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string damaged = whole;
    if (i % 2 == 0) {
      damaged.resize(random() % whole.size());
    } else {
      damaged[random() % whole.size()] ^= static_cast<char>(1U << random() % 8);
    }
    disk_.put("/data/dump.rdb", damaged);
    const auto done = export_rdb(disk_, request_);
    ASSERT_FALSE(done) << i;
    EXPECT_TRUE(done.error().message.starts_with("ERR '/data/dump.rdb': offset "))
        << done.error().message;
    EXPECT_EQ(names(), std::vector<std::string>{"dump.rdb"});
  }
}

TEST_F(RdbExportTest, ExistingFileIsKeptUnlessReplaceable) {
  fill();
  disk_.put("/data/out.rdb", "mine");
  const auto refused = export_rdb(disk_, request_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, is_error("ERR", "--overwrite"));
  EXPECT_EQ(content(), "mine");
  request_.may_replace = true;
  const auto done = export_rdb(disk_, request_);
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->replaced);
  EXPECT_EQ(exported().size(), 4U);
}

TEST_F(RdbExportTest, AnyDiskFaultLeavesTheOldOrTheNewFile) {
  fill();
  request_.may_replace = true;
  bool is_done = false;
  for (uint64_t number = 1; !is_done; ++number) {
    disk_.put("/data/out.rdb", "old");
    disk_.restart_count();
    disk_.fail_operation(number);
    is_done = static_cast<bool>(export_rdb(disk_, request_));
    is_done = is_done && disk_.operation_count() < number;
    disk_.restart_count();
    const bool is_old = content() == "old";
    EXPECT_TRUE(is_old || exported().size() == 4U) << number;
    EXPECT_EQ(names(), (std::vector<std::string>{"dump.rdb", "out.rdb"})) << number;
    disk_.cut_power(Unsynced::kLost);
    EXPECT_TRUE(content() == "old" || exported().size() == 4U) << number;
    ASSERT_LT(number, 100U);
  }
}

}  // namespace
}  // namespace persistence
