// SPDX-License-Identifier: MIT
#include "persistence/filters/bit_array_codec.h"
#include "tests/support/sanitized.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

namespace persistence {
namespace {

using core::bloom::ArrayMemory;
using core::bloom::BitArray;
using core::bloom::kArrayPageBytes;
using Piece = std::pair<uint64_t, std::string>;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kFewPages = 16 * kArrayPageBytes;

uint64_t resident_bytes() {
  return ArrayMemory::of_process().resident_bytes();
}

BitArray array_of(uint64_t size_bytes, std::initializer_list<uint64_t> set_bytes) {
  BitArray bits = *BitArray::allocate(size_bytes * 8);
  for (const uint64_t at : set_bytes) bits.bytes()[at] = std::byte{'x'};
  return bits;
}

// Returns a bit array that has empty, sparse and full memory pages and cache lines.
BitArray mixed_array(uint64_t size_bytes, uint32_t seed) {
  std::mt19937_64 random(seed);
  BitArray bits = array_of(size_bytes, {});
  for (uint64_t start = 0; start < size_bytes; start += 50'000) {
    const std::array<uint64_t, 4> kCounts{0, 3, 100, 40'000};
    for (uint64_t i = 0; i < kCounts[start / 50'000 % kCounts.size()]; ++i) {
      const uint64_t at = start + random() % 50'000;
      if (at < size_bytes) bits.bytes()[at] = static_cast<std::byte>(random());
    }
  }
  return bits;
}

std::vector<Piece> runs_of(const BitArray& bits, RunLimits limits) {
  std::vector<Piece> runs;
  for_each_run(bits, limits,
               [&](uint64_t offset, std::string_view bytes) { runs.emplace_back(offset, bytes); });
  return runs;
}

std::string line_with(size_t at) {
  std::string line(64, '\0');
  line[at] = 'x';
  return line;
}

TEST(BitArrayCodec, RunsAreTheLinesWithBits) {
  const BitArray bits = array_of(3 * kMiB, {5, 64, 200, kMiB, 3 * kMiB - 1});
  const std::vector<Piece> expected{{0, line_with(5) + line_with(0)},
                                    {192, line_with(8)},
                                    {kMiB, line_with(0)},
                                    {3 * kMiB - 64, line_with(63)}};
  EXPECT_EQ(runs_of(bits, {}), expected);
}

TEST(BitArrayCodec, ShortGapsJoinRunsAndLongRunsAreSplit) {
  const BitArray bits = array_of(3 * kMiB, {0, 64 + 256, 70'000, 70'064, 70'128});
  const auto joined = runs_of(bits, {256, 128});
  // The first run of bytes covers the cache lines 0 and 5 and the gap between them. The second run
  // covers three adjacent cache lines. Both runs are split into pieces of at most 128 bytes.
  const std::vector<Piece> expected{{0, line_with(0) + std::string(64, '\0')},
                                    {128, std::string(128, '\0')},
                                    {256, std::string(64, '\0') + line_with(0)},
                                    {69'952, line_with(48) + line_with(48)},
                                    {70'080, line_with(48)}};
  EXPECT_EQ(joined, expected);
}

TEST(BitArrayCodec, RunsDependOnTheBitsAlone) {
  const BitArray sparse = mixed_array(3 * kMiB, 7);
  BitArray touched = *sparse.clone();
  for (uint64_t at = 0; at < touched.bytes().size(); at += kArrayPageBytes) {
    touched.bytes()[at] |= std::byte{0};
  }
  EXPECT_EQ(runs_of(sparse, {}), runs_of(touched, {}));
}

std::string written_runs(const BitArray& bits) {
  std::string out;
  ByteWriter writer(out);
  ModuleWriter fields(writer, 0);
  write_runs(writer, fields, bits);
  return out;
}

// Decodes `bytes` into the array. Returns true if the bytes are valid and all of them were read.
bool read(std::string_view bytes, BitArray& bits) {
  StreamReader reader(bytes);
  reader.length();  // skips the id of the module that wrote the value
  ModuleReader fields(reader);
  return read_runs(fields, bits) && reader.at_end();
}

TEST(BitArrayCodec, RunsRestoreTheSameBits) {
  for (const uint64_t size_bytes : {kMiB, 3 * kMiB, 3 * kMiB + 64 * 17}) {
    for (uint32_t seed = 0; seed < support::rounds(3U, 1U); ++seed) {
      const BitArray bits = mixed_array(size_bytes, seed);
      const std::string bytes = written_runs(bits);
      EXPECT_LT(bytes.size(), size_bytes / 2);
      BitArray loaded = array_of(size_bytes, {});
      ASSERT_TRUE(read(bytes, loaded)) << "seed " << seed;
      EXPECT_TRUE(std::ranges::equal(loaded.bytes(), bits.bytes()));
      EXPECT_EQ(written_runs(loaded), bytes);
    }
  }
}

TEST(BitArrayCodec, EmptyArrayTakesFewBytesAndNoMemory) {
  const uint64_t before_bytes = resident_bytes();
  const BitArray bits = array_of(1024 * kMiB, {700 * kMiB});
  const std::string bytes = written_runs(bits);
  EXPECT_LT(bytes.size(), 100U);
  BitArray loaded = array_of(1024 * kMiB, {});
  ASSERT_TRUE(read(bytes, loaded));
  EXPECT_EQ(loaded.bytes()[700 * kMiB], std::byte{'x'});
  std::string plain;
  ByteWriter writer(plain);
  write_plain(writer, bits, 690 * kMiB, 710 * kMiB);
  EXPECT_EQ(plain.size(), 20 * kMiB);
  EXPECT_EQ(plain[10 * kMiB], 'x');
  EXPECT_EQ(std::ranges::count(plain, '\0'), 20 * int64_t{kMiB} - 1);
  BitArray from_plain = array_of(1024 * kMiB, {});
  StreamReader reader(plain);
  StringReader string = StringReader::plain(reader, plain.size());
  ASSERT_TRUE(read_plain(string, from_plain, 690 * kMiB, plain.size()));
  EXPECT_EQ(from_plain.count_ones(), bits.count_ones());
  EXPECT_LT(resident_bytes() - before_bytes, kFewPages);
}

TEST(BitArrayCodec, DamagedRunsAreRejected) {
  const BitArray bits = array_of(kMiB, {0, 5000, 100'000, 1'000'000});
  const std::string bytes = written_runs(bits);
  for (size_t size = 0; size < bytes.size(); ++size) {
    BitArray loaded = array_of(kMiB, {});
    EXPECT_FALSE(read(std::string_view(bytes).substr(0, size), loaded)) << size;
  }
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    BitArray loaded = array_of(kMiB, {});
    // A flipped bit may change the loaded array, but must not make the reader access memory outside
    // the array.
    (void)read(flipped, loaded);
  }
}

TEST(BitArrayCodec, RunsBeyondTheArrayAreRejected) {
  using Pairs = std::vector<std::pair<uint64_t, size_t>>;
  const auto is_taken = [](const Pairs& pairs) {
    std::string out;
    ByteWriter writer(out);
    ModuleWriter fields(writer, 0);
    for (const auto& [zeros, size] : pairs) {
      fields.unsigned_number(zeros);
      fields.string(std::string(size, 'x'), Packing::kNever);
    }
    BitArray loaded = array_of(kMiB, {});
    return read(out, loaded);
  };
  EXPECT_TRUE(is_taken({{kMiB, 0}}));
  EXPECT_TRUE(is_taken({{0, kMiB}}));
  EXPECT_TRUE(is_taken({{10, 20}, {0, 20}, {kMiB - 50, 0}}));
  EXPECT_FALSE(is_taken({{kMiB + 1, 0}}));
  EXPECT_FALSE(is_taken({{~uint64_t{0}, 64}, {kMiB - 63, 0}}));
  EXPECT_FALSE(is_taken({{kMiB - 10, 11}}));
  EXPECT_FALSE(is_taken({{0, 0}, {kMiB, 0}})) << "an empty pair could be repeated forever";
  EXPECT_FALSE(is_taken({{10, 20}}));
}

}  // namespace
}  // namespace persistence
