// SPDX-License-Identifier: MIT
//
// Filters of other servers come in as those servers knew them, and go out as they were.
#include "persistence/filters/filter_codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "persistence/bytes/crc64.h"
#include "persistence/filters/filter_chunks.h"
#include "persistence/filters/valkeybloom_blob.h"
#include "persistence/rdb/dump_payload.h"
#include "tests/support/budget.h"
#include "tests/support/filters.h"
#include "tests/support/sanitized.h"
#include "tests/support/vectors.h"

namespace persistence {
namespace {

using core::bloom::FilterParameters;
using core::bloom::LayoutId;
using core::bloom::ScalableFilter;
using filters::expect_as_described;
using filters::make;
using filters::parameters_of;
using FilterPtr = std::unique_ptr<ScalableFilter>;

const core::UnlimitedMemory kUnlimited;

core::Result<FilterPtr> load(std::string_view payload,
                             const core::MemoryBudget& budget = kUnlimited) {
  const auto body = checked_dump_body(payload);
  if (!body) return core::Error{"check sum"};
  StreamReader reader(*body);
  if (reader.u8() != kModuleType) return core::Error{"type"};
  return decode_filter(reader, budget);
}

std::string dump(const ScalableFilter& filter, Packing packing) {
  std::string payload(1, static_cast<char>(kModuleType));
  ByteWriter writer(payload);
  encode_filter(writer, filter, packing);
  append_dump_footer(payload);
  return payload;
}

void expect_equal(const ScalableFilter& a, const ScalableFilter& b) {
  EXPECT_EQ(dump(a, Packing::kNever), dump(b, Packing::kNever));
}

std::string resealed(std::string payload) {
  const uint64_t sum = crc64(0, std::string_view(payload).substr(0, payload.size() - 8));
  payload.resize(payload.size() - 8);
  ByteWriter(payload).u64(sum);
  return payload;
}

// Payloads of all layouts, small enough to damage thousands of times.
std::vector<std::string> small_payloads() {
  std::vector<std::string> payloads;
  for (const char* name : {"scaled", "nonscaling", "exp4", "empty"}) {
    payloads.push_back(vectors::read(fmt::format("redisbloom/dump/{}.bin", name)));
    payloads.push_back(vectors::read(fmt::format("valkey-bloom/dump/{}.bin", name)));
  }
  for (const uint32_t expansion : {0U, 1U, 2U}) {
    const auto parameters = parameters_of(LayoutId::kNative, 0.01, 20, expansion);
    payloads.push_back(dump(*make(parameters, "n", 60), Packing::kIfSmaller));
    payloads.push_back(dump(*make(parameters, "n", 60), Packing::kNever));
  }
  return payloads;
}

TEST(FilterCodec, PayloadsOfOtherServersAnswerAsThere) {
  for (const std::string writer : {"redisbloom", "valkey-bloom"}) {
    for (const vectors::Expected& expected : vectors::expected(writer)) {
      SCOPED_TRACE(writer + " " + expected.name);
      const auto filter = load(vectors::read(writer + "/dump/" + expected.name + ".bin"));
      ASSERT_TRUE(filter) << filter.error().message;
      expect_as_described(**filter, expected);
    }
  }
}

TEST(FilterCodec, WritesWhatOtherServersWrote) {
  for (const std::string writer : {"redisbloom", "valkey-bloom"}) {
    for (const vectors::Expected& expected : vectors::expected(writer)) {
      SCOPED_TRACE(writer + " " + expected.name);
      const std::string theirs = vectors::read(writer + "/dump/" + expected.name + ".bin");
      const auto filter = load(theirs);
      ASSERT_TRUE(filter);
      // The version in the footer, and with it the sum, is the writer's own.
      const std::string ours = dump(**filter, Packing::kIfSmaller);
      EXPECT_EQ(ours.substr(0, ours.size() - 10), theirs.substr(0, theirs.size() - 10));
    }
  }
}

TEST(FilterCodec, FiltersBuiltHereAreThoseBuiltThere) {
  struct Case {
    std::string name;
    std::string prefix;
    double error_rate;
    uint64_t capacity;
    uint32_t expansion;
    int item_count;
  };
  const Case cases[] = {
      {"tiny", "item", 0.01, 100, 2, 50},       {"scaled", "scaled", 0.01, 10, 2, 200},
      {"nonscaling", "ns", 0.01, 50, 0, 50},    {"tight", "tight", 0.0001, 1000, 2, 500},
      {"empty", "none", 0.01, 100, 2, 0},       {"exp1", "exp1", 0.01, 10, 1, 35},
      {"exp4", "exp4", 0.1, 5, 4, 100},         {"ins", "ins", 0.005, 500, 3, 20},
      {"wide", "wide", 0.001, 100000, 2, 1000}, {"loose", "loose", 0.3, 64, 2, 64},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    for (const LayoutId layout : {LayoutId::kRedisBloom, LayoutId::kValkeyBloom}) {
      const auto parameters = parameters_of(layout, c.error_rate, c.capacity, c.expansion);
      const auto ours = make(parameters, c.prefix, c.item_count);
      const auto writer = layout == LayoutId::kRedisBloom ? "redisbloom" : "valkey-bloom";
      const auto theirs = load(vectors::read(fmt::format("{}/dump/{}.bin", writer, c.name)));
      ASSERT_TRUE(theirs);
      expect_equal(*ours, **theirs);
    }
  }
}

TEST(FilterCodec, NativeFiltersComeBackAndGrowTheSame) {
  for (const double ratio : {0.0, 0.7}) {
    for (const uint32_t expansion : {0U, 1U, 3U}) {
      auto parameters = parameters_of(LayoutId::kNative, 0.02, 50, expansion);
      parameters.tightening_ratio = ratio;
      const auto filter = make(parameters, "n", 120);
      for (const Packing packing : {Packing::kNever, Packing::kIfSmaller}) {
        const auto loaded = load(dump(*filter, packing));
        ASSERT_TRUE(loaded) << loaded.error().message;
        expect_equal(*filter, **loaded);
        EXPECT_EQ((*loaded)->parameters(), filter->parameters());
        const auto twin = filter->clone();
        for (int i = 0; i < 500; ++i) {
          const std::string item = fmt::format("later:{}", i);
          EXPECT_EQ(twin->add(item, kUnlimited), (*loaded)->add(item, kUnlimited));
        }
        expect_equal(*twin, **loaded);
      }
    }
  }
}

TEST(FilterCodec, OldFormsOfRedisBloomKeepTheirModulus) {
  for (const bool hashes_32_bits : {false, true}) {
    for (const uint64_t capacity : {1, 2, 10, 100, 1000}) {
      auto parameters = parameters_of(LayoutId::kRedisBloom, 0.02, capacity, 2);
      parameters.hashes_32_bits = hashes_32_bits;
      parameters.rounds_to_power_of_two = true;
      const auto filter = make(parameters, "old", 150);
      const auto loaded = load(dump(*filter, Packing::kNever));
      ASSERT_TRUE(loaded) << loaded.error().message << " " << capacity;
      // Rounding up made room, which is all that is stored.
      parameters.capacity = filter->layer_info(0).capacity;
      EXPECT_EQ((*loaded)->parameters(), parameters);
      expect_equal(*filter, **loaded);
      for (int i = 0; i < 150; ++i) EXPECT_TRUE((*loaded)->may_contain(fmt::format("old:{}", i)));
    }
  }
}

// A value as RedisBloom 2.0 wrote it: encoding 3 without growth, and no bit count.
TEST(FilterCodec, VersionThreeWithoutABitCountIsRead) {
  std::string payload(1, static_cast<char>(kModuleType));
  ByteWriter writer(payload);
  ModuleWriter out(writer, module_id("MBbloom--", 3));
  const double bits_per_item = 9.585058377367446;
  out.unsigned_number(0);
  out.unsigned_number(1);
  out.unsigned_number(4);
  out.unsigned_number(106);
  out.real_number(0.01);
  out.unsigned_number(7);
  out.real_number(bits_per_item);
  out.unsigned_number(0);
  out.unsigned_number(10);
  out.string(std::string(128, '\0'), Packing::kNever);
  out.unsigned_number(0);
  out.end();
  append_dump_footer(payload);
  const auto filter = load(payload);
  ASSERT_TRUE(filter) << filter.error().message;
  EXPECT_EQ((*filter)->layer_info(0).geometry.bit_count, 1024U);
  (*filter)->add("a", kUnlimited);
  for (const int bit : {266, 283, 300, 317, 334, 351, 368}) {
    const std::byte byte = (*filter)->layer_bytes(0)[static_cast<size_t>(bit / 8)];
    EXPECT_NE(byte & static_cast<std::byte>(1 << bit % 8), std::byte{0}) << bit;
  }
}

struct LoadPair {
  std::string load;
  std::string dump;
};

TEST(FilterCodec, LoadPayloadsAreReadAndWritten) {
  std::vector<LoadPair> pairs;
  for (const char* name : {"auto", "empty", "exp1", "exp4", "ins", "loose", "nonscaling", "scaled",
                           "tight", "tiny", "ttlbf", "binkey"}) {
    pairs.push_back({fmt::format("valkey-bloom/load/{}.bin", name),
                     fmt::format("valkey-bloom/dump/{}.bin", name)});
  }
  for (const char* name : {"rnd", "rndscaled"}) {
    pairs.push_back({fmt::format("valkey-bloom/random-seed/{}.load.bin", name),
                     fmt::format("valkey-bloom/random-seed/{}.dump.bin", name)});
  }
  for (const LoadPair& pair : pairs) {
    SCOPED_TRACE(pair.load);
    const std::string payload = vectors::read(pair.load);
    const auto filter = decode_load_payload(payload, kUnlimited);
    ASSERT_TRUE(filter) << filter.error().message;
    EXPECT_EQ(encode_load_payload(**filter), payload);
    const auto dumped = load(vectors::read(pair.dump));
    ASSERT_TRUE(dumped);
    expect_equal(**filter, **dumped);
  }
}

TEST(FilterCodec, ChunksAreThoseOfRedisBloom) {
  for (const char* name : {"empty", "nonscaling", "scaled", "tight", "tiny"}) {
    SCOPED_TRACE(name);
    const auto filter = load(vectors::read(fmt::format("redisbloom/dump/{}.bin", name)));
    ASSERT_TRUE(filter);
    const auto file = [&](size_t n) {
      return vectors::read(fmt::format("redisbloom/scandump/{}/{:02}.bin", name, n));
    };
    EXPECT_EQ(encode_chunk_header(**filter), file(0));
    const auto copy = decode_chunk_header(file(0), kUnlimited);
    ASSERT_TRUE(copy) << copy.error().message;
    EXPECT_EQ((*copy)->item_count(), (*filter)->item_count());
    uint64_t position = 0;
    std::string padded;
    for (size_t i = 1; i <= (*filter)->layer_count(); ++i) {
      const std::string chunk = file(i);
      EXPECT_EQ(chunk_at(**filter, position, padded), chunk);
      EXPECT_EQ(load_chunk(**copy, position, chunk), ChunkOutcome::kLoaded);
      position += chunk.size();
    }
    EXPECT_EQ(chunk_at(**filter, position, padded), "");
    EXPECT_EQ(load_chunk(**copy, position, ""), ChunkOutcome::kPastTheEnd);
    EXPECT_EQ(load_chunk(**copy, position - 1, "ab"), ChunkOutcome::kCrossesLayers);
    expect_equal(**filter, **copy);
  }
}

TEST(FilterCodec, EveryLayoutTravelsInChunks) {
  for (const LayoutId layout : {LayoutId::kNative, LayoutId::kRedisBloom, LayoutId::kValkeyBloom}) {
    for (const bool is_odd : {false, true}) {
      auto parameters = parameters_of(layout, 0.03, is_odd ? 1 : 30, 2);
      parameters.rounds_to_power_of_two = is_odd;
      if (is_odd) parameters.seed[3] ^= 1;
      const auto filter = make(parameters, "c", 90);
      const auto copy = decode_chunk_header(encode_chunk_header(*filter), kUnlimited);
      ASSERT_TRUE(copy) << copy.error().message;
      EXPECT_EQ((*copy)->parameters(), filter->parameters());
      std::string padded;
      for (uint64_t position = 0;;) {
        const std::string_view chunk = chunk_at(*filter, position, padded);
        if (chunk.empty()) break;
        EXPECT_EQ(load_chunk(**copy, position, chunk), ChunkOutcome::kLoaded);
        position += chunk.size();
      }
      expect_equal(*filter, **copy);
    }
  }
}

TEST(FilterCodec, HeadersThatLieAreRefused) {
  const std::string good = vectors::read("redisbloom/scandump/tiny/00.bin");
  struct Case {
    const char* what;
    size_t offset;
    std::string bytes;
  };
  const auto number = [](uint64_t value, size_t size) {
    std::string bytes;
    ByteWriter(bytes).u64(value);
    return bytes.substr(0, size);
  };
  const auto real = [](double value) {
    std::string bytes;
    ByteWriter(bytes).f64(value);
    return bytes;
  };
  const Case cases[] = {
      {"another total", 0, number(49, 8)},
      {"no layers", 8, number(0, 4)},
      {"more layers than bytes", 8, number(0xFFFFFFFF, 4)},
      {"unknown options", 12, number(64, 4)},
      {"growth 0", 16, number(0, 4)},
      {"growth beyond the limit", 16, number(32769, 4)},
      {"an array of 2^50 bytes", 20, number(uint64_t{1} << 50, 8)},
      {"an array size whose bits overflow", 20, number(uint64_t{1} << 61, 8)},
      {"other bits", 28, number(1153, 8)},
      {"more items than capacity", 36, number(101, 8)},
      {"rate NaN", 44, real(std::nan(""))},
      {"rate 0", 44, real(0)},
      {"rate 1", 44, real(1)},
      {"bits per item infinite", 52, real(std::numeric_limits<double>::infinity())},
      {"no hashes", 60, number(0, 4)},
      {"1e8 hashes", 60, number(100000000, 4)},
      {"capacity 0", 64, number(0, 8)},
      {"capacity 2^63", 64, number(uint64_t{1} << 63, 8)},
      {"an exponent under NOROUND", 72, number(10, 1)},
  };
  for (const Case& c : cases) {
    std::string header = good;
    header.replace(c.offset, c.bytes.size(), c.bytes);
    EXPECT_FALSE(decode_chunk_header(header, kUnlimited)) << c.what;
  }
  // Cut there it is a header of release 2.2, which had 32-bit capacities.
  constexpr size_t kOldSize = 69;
  for (size_t size = 0; size < good.size(); ++size) {
    if (size == kOldSize) continue;
    EXPECT_FALSE(decode_chunk_header(good.substr(0, size), kUnlimited)) << size;
  }
  EXPECT_FALSE(decode_chunk_header(good + "x", kUnlimited));
}

TEST(FilterCodec, TheBudgetIsAskedBeforeAnyLayerIsMade) {
  const std::string payload = vectors::read("redisbloom/dump/wide.bin");
  for (const uint64_t bytes : {0, 1000, 197760}) {
    const auto refused = load(payload, support::Budget(bytes));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, kDoesNotFit);
  }
  EXPECT_TRUE(load(payload, support::Budget(198000)));
  // A true header of a terabyte.
  const auto parameters = parameters_of(LayoutId::kRedisBloom, 0.01, 100, 2);
  std::string header = encode_chunk_header(*make(parameters, "", 0));
  const uint64_t capacity = uint64_t{1} << 40;
  const auto geometry =
      core::bloom::plan_first_layer(parameters_of(LayoutId::kRedisBloom, 0.01, capacity, 2))
          ->geometry;
  std::string sizes;
  ByteWriter writer(sizes);
  writer.u64(geometry.size_bytes());
  writer.u64(geometry.bit_count);
  header.replace(20, 16, sizes);
  sizes.clear();
  writer.u64(capacity);
  header.replace(64, 8, sizes);
  const auto refused = decode_chunk_header(header, support::Budget(uint64_t{1} << 30));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, kDoesNotFit);
}

TEST(FilterCodec, EveryTruncationIsRefused) {
  for (const std::string& payload : small_payloads()) {
    for (size_t size = 10; size < payload.size(); ++size) {
      std::string cut = payload.substr(0, size - 10);
      append_dump_footer(cut);
      EXPECT_FALSE(load(cut)) << size;
    }
  }
  const std::string scaled = vectors::read("valkey-bloom/load/scaled.bin");
  for (size_t size = 0; size < scaled.size(); ++size) {
    EXPECT_FALSE(decode_load_payload(scaled.substr(0, size), kUnlimited)) << size;
  }
}

// Whatever was flipped: an error, or a filter that works and can be written again.
void use(const core::Result<FilterPtr>& loaded) {
  if (!loaded) return;
  ScalableFilter& filter = **loaded;
  filter.add("item", support::Budget(1 << 20));
  filter.may_contain("another");
  const auto again = load(dump(filter, Packing::kNever));
  ASSERT_TRUE(again) << again.error().message;
  expect_equal(filter, **again);
}

TEST(FilterCodec, FlippedBytesGiveAnErrorOrAConsistentFilter) {
  constexpr uint64_t kSeed = 20;
  constexpr int kFlips = support::rounds(5000, 500);
  std::mt19937_64 random(kSeed);
  const support::Budget budget(1 << 20);
  for (const std::string& payload : small_payloads()) {
    for (int i = 0; i < kFlips; ++i) {
      std::string damaged = payload;
      // Most of the payload is bits; its beginning holds what can be wrong.
      const size_t end =
          i % 2 == 0 ? std::min<size_t>(100, payload.size() - 10) : payload.size() - 10;
      damaged[random() % end] ^= static_cast<char>(1 + random() % 255);
      use(load(resealed(std::move(damaged)), budget));
      ASSERT_FALSE(HasFatalFailure()) << "seed " << kSeed << ", flip " << i;
    }
  }
}

TEST(FilterCodec, OtherModulesAreNamed) {
  std::string payload(1, static_cast<char>(kModuleType));
  ByteWriter writer(payload);
  ModuleWriter(writer, module_id("MBbloomCF", 4)).end();
  append_dump_footer(payload);
  const auto refused = load(payload);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "ERR unknown module value 'MBbloomCF' version 4");
}

}  // namespace
}  // namespace persistence
