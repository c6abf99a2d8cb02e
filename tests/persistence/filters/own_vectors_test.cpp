// SPDX-License-Identifier: MIT
//
// Loads filters that an earlier version of this server has written
// (tests/vectors/make_bloomery.py). This version must write these filters as the same bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/memory/memory_budget.h"
#include "persistence/filters/filter_chunks.h"
#include "persistence/filters/filter_codec.h"
#include "persistence/rdb/dump_payload.h"
#include "tests/support/filters.h"
#include "tests/support/vectors.h"

namespace persistence {
namespace {

using core::bloom::ScalableFilter;
using FilterPtr = std::unique_ptr<ScalableFilter>;

const core::UnlimitedMemory kVectorBudget;

// Returns the value in a DUMP payload, without the type byte, the version and the checksum.
std::string vector_value(const std::string& payload) {
  constexpr size_t kTailBytes = 10;
  return payload.substr(1, payload.size() - 1 - kTailBytes);
}

FilterPtr decoded_vector(const std::string& payload) {
  const std::string value = vector_value(payload);
  StreamReader reader(value);
  auto filter = decode_filter(reader, kVectorBudget);
  EXPECT_TRUE(filter) << filter.error().message;
  return filter ? std::move(*filter) : nullptr;
}

std::string encoded_vector(const ScalableFilter& filter) {
  std::string bytes;
  ByteWriter writer(bytes);
  encode_filter(writer, filter, Packing::kIfSmaller);
  return bytes;
}

// Builds a filter from files that contain its chunks as BF.SCANDUMP returned them.
FilterPtr from_chunks(const std::string& name) {
  const std::string folder = "bloomery/scandump/" + name + "/";
  auto filter = decode_chunk_header(vectors::read(folder + "00.bin"), kVectorBudget);
  EXPECT_TRUE(filter) << filter.error().message;
  if (!filter) return nullptr;
  uint64_t position = 0;
  for (int n = 1; std::filesystem::exists(vectors::path(fmt::format("{}{:02}.bin", folder, n)));
       ++n) {
    const std::string chunk = vectors::read(fmt::format("{}{:02}.bin", folder, n));
    EXPECT_EQ(load_chunk(**filter, position, chunk), ChunkOutcome::kLoaded) << name;
    position += chunk.size();
  }
  return std::move(*filter);
}

TEST(OwnVectors, FiltersOfEarlierBuildsAreUnchanged) {
  for (const vectors::Expected& expected : vectors::expected("bloomery")) {
    SCOPED_TRACE(expected.name);
    const std::string payload = vectors::read("bloomery/dump/" + expected.name + ".bin");
    const FilterPtr filter = decoded_vector(payload);
    ASSERT_NE(filter, nullptr);
    filters::expect_as_described(*filter, expected);
    EXPECT_EQ(encoded_vector(*filter), vector_value(payload));
    const FilterPtr loaded = from_chunks(expected.name);
    ASSERT_NE(loaded, nullptr);
    filters::expect_as_described(*loaded, expected);
    EXPECT_EQ(encoded_vector(*loaded), vector_value(payload));
  }
}

TEST(OwnVectors, NoItemOfEarlierBuildsIsLost) {
  std::ifstream file(vectors::path("bloomery/items.txt"));
  std::string name;
  int first = 0;
  int end = 0;
  int filter_count = 0;
  while (file >> name >> first >> end) {
    const FilterPtr filter = decoded_vector(vectors::read("bloomery/dump/" + name + ".bin"));
    ASSERT_NE(filter, nullptr) << name;
    for (int n = first; n < end; ++n) {
      EXPECT_TRUE(filter->may_contain(fmt::format("item:{}", n))) << name << ' ' << n;
    }
    ++filter_count;
  }
  EXPECT_GT(filter_count, 3);
}

}  // namespace
}  // namespace persistence
