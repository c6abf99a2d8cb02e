// SPDX-License-Identifier: MIT
//
// Contestant: the interface through which engine_bench measures the filter of any library. Its
// functions take items, not hashes, so measured times include hashing.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace bench {

using Item = std::array<char, 16>;
inline constexpr size_t kEngineBatchItems = 128;

class Contestant {
 public:
  virtual ~Contestant() = default;
  // Removes all items.
  virtual void clear() = 0;
  // Adds the items in batches. REQUIRES: the number of items is a multiple of the batch size.
  virtual void add(std::span<const Item> items) = 0;
  // Looks the items up in batches, or one by one, and returns the number found.
  virtual uint64_t find(std::span<const Item> items) const = 0;
  virtual uint64_t find_singly(std::span<const Item> items) const = 0;
};

struct Candidate {
  std::string name;
  double bits_per_item = 0;
  std::unique_ptr<Contestant> filter;
};

// Returns all configurations of Boost.Bloom for this number of items and error rate that need at
// most `bits_per_item_max` bits per item. Returns none if the benchmark was built without
// Boost.Bloom.
std::vector<Candidate> boost_filters(uint64_t items, double error_rate, double bits_per_item_max);

}  // namespace bench
