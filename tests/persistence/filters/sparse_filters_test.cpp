// SPDX-License-Identifier: MIT
//
// Filters that are nearly empty are encoded and decoded in all forms. The zeros of their arrays
// must need no memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/keyspace/keyspace.h"
#include "persistence/aof/aof_base_writer.h"
#include "persistence/bytes/crc64.h"
#include "persistence/filters/filter_chunks.h"
#include "persistence/filters/filter_codec.h"
#include "persistence/filters/valkeybloom_codec.h"
#include "persistence/rdb/dump_payload.h"
#include "persistence/rdb/rdb_writer.h"
#include "tests/support/filter_forms.h"
#include "tests/support/filters.h"
#include "tests/support/load_payload.h"
#include "tests/support/snapshots.h"
#include "tests/support/vectors.h"
#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using core::bloom::ArrayMemory;
using core::bloom::LayoutId;
using core::bloom::NativeLayout;
using core::bloom::ScalableFilter;
using core::bloom::ValkeyBloomLayout;
using core::keyspace::Keyspace;
using FilterPtr = std::unique_ptr<ScalableFilter>;

const core::UnlimitedMemory kUnlimited;

constexpr uint64_t kCapacity = 20'000'000;
constexpr int kSparseItems = 50;
// Each of the 50 items of a filter touches at most ten pages of its array; two more pages per item
// are a margin.
constexpr uint64_t kMemoryMax = uint64_t{kSparseItems} * 12 * core::bloom::kArrayPageBytes;

FilterPtr sparse_filter(LayoutId layout) {
  return filters::make(filters::parameters(layout, kCapacity, 0.01, 0), "item", kSparseItems);
}

void expect_same(const ScalableFilter& a, const ScalableFilter& b) {
  EXPECT_EQ(a.item_count(), b.item_count());
  ASSERT_EQ(a.layer_count(), b.layer_count());
  EXPECT_EQ(a.layer_bits(0).count_ones(), b.layer_bits(0).count_ones());
  for (int i = 0; i < kSparseItems; ++i) EXPECT_TRUE(b.may_contain(fmt::format("item:{}", i)));
}

std::string encoded(const ScalableFilter& filter, Packing packing) {
  std::string bytes;
  ByteWriter writer(bytes);
  encode_filter(writer, filter, packing);
  return bytes;
}

FilterPtr decoded(std::string_view bytes) {
  StreamReader reader(bytes);
  auto filter = decode_filter(reader, kUnlimited);
  EXPECT_TRUE(filter) << filter.error().message;
  return filter ? std::move(*filter) : nullptr;
}

class SparseFilters : public testing::TestWithParam<LayoutId> {
 protected:
  void SetUp() override {
    if (ArrayMemory::of_process().descriptor() < 0)
      GTEST_SKIP() << "this system does not report holes";
    before_bytes_ = ArrayMemory::of_process().resident_bytes();
    filter_ = sparse_filter(GetParam());
    array_bytes_ = filter_->layer_bits(0).bytes().size();
    line_count_ = kSparseItems * lookup_lines(filter_->layer_info(0).geometry);
  }
  void TearDown() override {
    if (filter_ != nullptr) {
      EXPECT_LT(ArrayMemory::of_process().resident_bytes() - before_bytes_, kMemoryMax);
    }
  }
  void expect_copy(const ScalableFilter& copy) {
    expect_same(*filter_, copy);
    EXPECT_LT(ArrayMemory::of_process().resident_bytes() - before_bytes_, 2 * kMemoryMax);
  }

  uint64_t before_bytes_ = 0;
  uint64_t array_bytes_ = 0;
  uint64_t line_count_ = 0;  // maximum number of cache lines in which bits are set
  FilterPtr filter_;
};

TEST_P(SparseFilters, SurviveSnapshots) {
  Keyspace keyspace(1, 1);
  keyspace.insert(0, keyspace.ref("f")).set_filter(std::move(filter_));
  filter_ = keyspace.find_any(0, keyspace.ref("f"))->filter().clone();
  std::string bytes;
  StringSink sink(bytes);
  ASSERT_TRUE(write_rdb(sink, keyspace, {}));
  if (filter_forms::is_stored_as_runs(GetParam())) {
    EXPECT_LT(bytes.size(), line_count_ * 200);
  } else {
    EXPECT_GT(bytes.size(), array_bytes_);  // other servers require the whole array
  }
  keyspace.erase(0, keyspace.ref("f"));
  Keyspace loaded(1, 2);
  const auto result = snapshots::load(bytes, loaded);
  ASSERT_TRUE(result) << result.error().message;
  expect_copy(loaded.find_any(0, loaded.ref("f"))->filter());
}

TEST_P(SparseFilters, SurviveDumpPayloads) {
  for (const Packing packing : {Packing::kIfSmaller, Packing::kNever}) {
    const std::string bytes = encoded(*filter_, packing);
    const FilterPtr copy = decoded(bytes);
    ASSERT_NE(copy, nullptr);
    expect_copy(*copy);
    EXPECT_TRUE(encoded(*copy, packing) == bytes);
  }
}

TEST_P(SparseFilters, SurviveChunks) {
  const auto copy = decode_chunk_header(encode_chunk_header(*filter_), kUnlimited);
  ASSERT_TRUE(copy) << copy.error().message;
  uint64_t position = 0;
  for (std::string padded;;) {
    const std::string_view chunk = chunk_at(*filter_, position, padded);
    if (chunk.empty()) break;
    EXPECT_EQ(load_chunk(**copy, position, chunk), ChunkOutcome::kLoaded);
    position += chunk.size();
  }
  EXPECT_EQ(position, array_bytes_);
  expect_copy(**copy);
}

TEST_P(SparseFilters, SurviveCommands) {
  Keyspace keyspace(1, 1);
  keyspace.insert(0, keyspace.ref("f")).set_filter(filter_->clone());
  virtual_disk::VirtualDisk disk;
  const auto written = write_command_base_file(disk, "base.aof", keyspace, {});
  ASSERT_TRUE(written) << written.error().message;
  if (filter_forms::is_stored_as_runs(GetParam())) {
    EXPECT_LT(written->bytes, line_count_ * 1000);
  }
}

TEST_P(SparseFilters, SurvivePayloadsOfBfLoad) {
  if (GetParam() != ValkeyBloomLayout::kId) return;
  const auto copy = decode_load_payload(encode_load_payload(*filter_), kUnlimited);
  ASSERT_TRUE(copy) << copy.error().message;
  expect_copy(**copy);
}

TEST_P(SparseFilters, SurviveCopies) {
  expect_copy(*filter_->clone());
}

INSTANTIATE_TEST_SUITE_P(Layouts, SparseFilters, testing::ValuesIn(filters::kLayouts));

// wide-version-1.bin was written by a release that stored arrays with all their zeros. It has the
// filter of BF.RESERVE wide 0.01 1000000 with the items wide:0 to wide:99.
TEST(SparseFilter, VersionOneIsReadAndWrittenAsRuns) {
  const std::string old = vectors::read("bloomery/dump/wide-version-1.bin");
  const auto body = checked_dump_body(old);
  ASSERT_TRUE(body);
  const FilterPtr filter = decoded(body->substr(1));
  ASSERT_NE(filter, nullptr);
  EXPECT_EQ(filter->item_count(), 100U);
  const auto twin = filters::make(filter->parameters(), "wide", 100);
  const std::string now = encoded(*filter, Packing::kIfSmaller);
  EXPECT_EQ(now, encoded(*twin, Packing::kIfSmaller));
  EXPECT_EQ(encoded(*decoded(now), Packing::kNever), encoded(*twin, Packing::kNever));
  StreamReader reader(now);
  EXPECT_EQ(module_version(reader.length()), 2U);
  // Filters without big arrays keep version 1 of the format, for servers that know only that
  // version.
  const auto small = filters::make(filters::parameters(NativeLayout::kId, 1000, 0.01), "s", 10);
  const std::string small_bytes = encoded(*small, Packing::kNever);
  StreamReader small_reader(small_bytes);
  EXPECT_EQ(module_version(small_reader.length()), 1U);
}

// The decoder must reject a truncated encoding of a sparse array. If a bit is flipped, it must
// reject the encoding or return a filter of the same size.
TEST(SparseFilter, DamagedRunsAreRejected) {
  const auto filter =
      filters::make(filters::parameters(NativeLayout::kId, 1'000'000, 0.01), "d", 5);
  const std::string bytes = encoded(*filter, Packing::kNever);
  for (size_t size = 0; size < bytes.size(); ++size) {
    StreamReader reader(std::string_view(bytes).substr(0, size));
    EXPECT_FALSE(decode_filter(reader, kUnlimited)) << size;
  }
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    StreamReader reader(flipped);
    const auto damaged = decode_filter(reader, kUnlimited);
    if (damaged) {
      EXPECT_TRUE(decoded(encoded(**damaged, Packing::kNever)));
    }
  }
}

TEST(SparseFilter, HugeRunsAreRejectedBeforeAllocation) {
  const auto filter =
      filters::make(filters::parameters(NativeLayout::kId, 100'000'000, 0.01, 0), "d", 5);
  const std::string bytes = encoded(*filter, Packing::kNever);
  EXPECT_LT(bytes.size(), 5000U);
  class Small final : public core::MemoryBudget {
   public:
    uint64_t available_bytes() const override { return uint64_t{100} << 20; }
  };
  const uint64_t before_bytes = core::bloom::mapped_bytes();
  StreamReader reader(bytes);
  const auto refused = decode_filter(reader, Small());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, kDoesNotFit);
  EXPECT_EQ(core::bloom::mapped_bytes(), before_bytes);
}

}  // namespace
}  // namespace persistence
