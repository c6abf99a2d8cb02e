// SPDX-License-Identifier: MIT
#include "server/tools/record_blocks.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/memory_streams.h"

namespace server {
namespace {

using Items = std::vector<std::string>;

// A source that returns at most `piece_bytes` per read, like a pipe.
class PieceSource final : public persistence::ByteSource {
 public:
  PieceSource(std::string bytes, size_t piece_bytes)
      : bytes_(std::move(bytes)), piece_bytes_(piece_bytes) {}
  core::Result<size_t> read(std::span<char> out) override {
    const size_t size = std::min({out.size(), piece_bytes_, bytes_.size() - position_});
    bytes_.copy(out.data(), size, position_);
    position_ += size;
    return size;
  }

 private:
  const std::string bytes_;
  const size_t piece_bytes_;
  size_t position_ = 0;
};

struct ReadOut {
  Items items;
  std::string bytes;
  uint64_t record_count = 0;
  std::string error;
};

ReadOut read_out(const std::string& bytes, const RecordOptions& options, size_t piece_bytes) {
  PieceSource source(bytes, piece_bytes);
  RecordBlocks blocks(source, options);
  ReadOut all;
  for (;;) {
    const auto block = blocks.next();
    if (!block) {
      all.error = block.error().message;
      return all;
    }
    if (block->bytes.empty()) return all;
    EXPECT_EQ(block->cuts.size(), options.part_count + 1);
    for (unsigned part = 0; part < options.part_count; ++part) {
      for_each_record(block->part(part), options.format,
                      [&](std::string_view item) { all.items.emplace_back(item); });
    }
    all.bytes += block->bytes;
    all.record_count += block->record_count;
  }
}

std::string with_length(std::string_view item) {
  std::string record;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    record += static_cast<char>(item.size() >> shift & 0xFF);
  }
  return record.append(item);
}

std::string joined(const Items& items, RecordFormat format) {
  std::string bytes;
  for (const std::string& item : items) {
    bytes += format == RecordFormat::kLines ? item + '\n' : with_length(item);
  }
  return bytes;
}

Items random_items(uint64_t seed, size_t count, size_t size_max) {
  std::mt19937_64 random(seed);
  Items items;
  for (size_t i = 0; i < count; ++i) {
    const size_t size = random() % 10 == 0 ? random() % (size_max + 1) : random() % 12;
    items.emplace_back(size, static_cast<char>('a' + random() % 26));
  }
  return items;
}

class RecordBlocksTest : public testing::TestWithParam<RecordFormat> {};
INSTANTIATE_TEST_SUITE_P(Formats, RecordBlocksTest,
                         testing::Values(RecordFormat::kLines, RecordFormat::kLength32));

TEST_P(RecordBlocksTest, ReturnsAllItemsInOrder) {
  const Items items = random_items(1, 3000, 700);
  const std::string bytes = joined(items, GetParam());
  for (const size_t block_bytes : {1, 64, 1000, 1 << 20}) {
    for (const unsigned parts : {1U, 3U, 16U}) {
      for (const size_t piece_bytes : {7, 1 << 20}) {
        const ReadOut all = read_out(bytes, {GetParam(), parts, block_bytes}, piece_bytes);
        EXPECT_EQ(all.error, "");
        EXPECT_EQ(all.items, items);
        EXPECT_EQ(all.bytes, bytes);
        EXPECT_EQ(all.record_count, items.size());
      }
    }
  }
}

TEST_P(RecordBlocksTest, PartsOfABigBlockHaveSimilarSizes) {
  const std::string bytes = joined(random_items(2, 200000, 20), GetParam());
  persistence::MemorySource source(bytes);
  RecordBlocks blocks(source, {GetParam(), 4, bytes.size()});
  const auto block = blocks.next();
  ASSERT_TRUE(block);
  for (size_t part = 0; part < 4; ++part) {
    EXPECT_NEAR(double(block->part(part).size()), double(bytes.size()) / 4, 70000);
  }
}

TEST_P(RecordBlocksTest, EmptyStreamHasNoRecords) {
  const ReadOut all = read_out("", {GetParam(), 2}, 10);
  EXPECT_EQ(all.error, "");
  EXPECT_EQ(all.record_count, 0U);
}

TEST_P(RecordBlocksTest, RecordsUpToTheLimitAreAccepted) {
  const Items longest{"a", std::string(1000, 'x'), "b"};
  const Items too_long{"a", std::string(1001, 'x'), "b"};
  for (const size_t block_bytes : {10, 900, 1000}) {
    const RecordOptions options{GetParam(), 2, block_bytes, 1000};
    EXPECT_EQ(read_out(joined(longest, GetParam()), options, 100).items, longest);
    const ReadOut refused = read_out(joined(too_long, GetParam()), options, 100);
    EXPECT_NE(refused.error.find("1000"), std::string::npos) << block_bytes;
  }
}

TEST(RecordBlocks, AnyLineIsAnItem) {
  const RecordOptions options{RecordFormat::kLines, 2};
  EXPECT_EQ(read_out("a\n\nb\r\n c", options, 100).items, (Items{"a", "", "b\r", " c"}));
  EXPECT_EQ(read_out("a\n", options, 100).items, Items{"a"});
  EXPECT_EQ(read_out("a", options, 100).record_count, 1U);
  EXPECT_EQ(read_out("\n", options, 100).items, Items{""});
}

TEST(RecordBlocks, TruncatedRecordIsRejectedWithItsOffset) {
  const std::string bytes = joined({"abc", "", "defg"}, RecordFormat::kLength32);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const ReadOut all = read_out(bytes.substr(0, size), {RecordFormat::kLength32, 2, 5}, 3);
    const bool is_whole = size == 0 || size == 7 || size == 11 || size == bytes.size();
    EXPECT_EQ(all.error.empty(), is_whole) << size;
    if (is_whole) continue;
    const std::string place = size > 11 ? "byte 11 " : size > 7 ? "byte 7 " : "byte 0 ";
    EXPECT_NE(all.error.find(place + "is cut off"), std::string::npos) << all.error;
  }
}

TEST(RecordBlocks, AnnouncedLengthAllocatesNothing) {
  // The record announces half a gigabyte, but only three bytes follow.
  const std::string bytes = std::string("\xff\xff\xff\x1f", 4) + "abc";
  const ReadOut all = read_out(bytes, {RecordFormat::kLength32, 2}, 100);
  EXPECT_NE(all.error.find("is cut off"), std::string::npos) << all.error;
  const ReadOut more = read_out(std::string(8, '\xff'), {RecordFormat::kLength32, 2}, 100);
  EXPECT_NE(more.error.find("claims 4294967295 bytes"), std::string::npos) << more.error;
}

}  // namespace
}  // namespace server
