// SPDX-License-Identifier: MIT
//
// Shared code of the filter benchmarks: items, a clock, layouts by name, and the creation of
// filters. If a filter cannot be created, the benchmark ends.
//
// Thread-safe: the functions keep no state.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"
#include "core/memory/memory_budget.h"

namespace bench {

inline const core::UnlimitedMemory kBudget;
using FilterPtr = std::unique_ptr<core::bloom::ScalableFilter>;
inline constexpr size_t kBatchItems = 128;

// Returns the hash of an item of 16 bytes, made from `kind` and `number`. Items of different kinds
// are never equal: absent items have another kind than the added items.
inline core::bloom::ItemHash item_hash(const core::bloom::ItemHasher& hash, uint64_t kind,
                                       uint64_t number) {
  std::array<char, 16> item;
  const uint64_t spread = number * 0x9E3779B97F4A7C15 + kind;
  std::memcpy(item.data(), &spread, 8);
  std::memcpy(item.data() + 8, &kind, 8);
  return hash(std::string_view(item.data(), item.size()));
}

// CPU time of this process. Unlike wall time, it excludes the time in which other programs run.
inline double cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

inline FilterPtr make_filter(const core::bloom::FilterParameters& parameters) {
  auto filter = core::bloom::ScalableFilter::create(parameters, kBudget);
  if (!filter) {
    fmt::print(stderr, "{}\n", filter.error().message);
    std::exit(EXIT_FAILURE);
  }
  return std::move(*filter);
}

// Returns the parameters of a native filter, with the layout that the server would choose.
inline core::bloom::FilterParameters native_parameters(uint64_t capacity, double error_rate,
                                                       uint32_t expansion = 2) {
  core::bloom::FilterParameters parameters;
  parameters.error_rate = error_rate;
  parameters.capacity = capacity;
  parameters.expansion = expansion;
  parameters.layout = native_layout(core::bloom::kNativeVersionMax, parameters);
  return parameters;
}

inline FilterPtr make_filter(core::bloom::FilterParameters parameters, double error_rate,
                             uint64_t capacity, uint32_t expansion) {
  parameters.error_rate = error_rate;
  parameters.capacity = capacity;
  parameters.expansion = expansion;
  return make_filter(parameters);
}

struct NamedParameters {
  std::string name;
  core::bloom::FilterParameters parameters;
};

// Returns the deletable layouts with their names. A layout with regions occurs once for each width
// in `region_bits`. `region_name` is a format string: it makes the name of such an entry from the
// layout's name and the width.
inline std::vector<NamedParameters> deletable_layouts(std::span<const int> region_bits,
                                                      std::string_view region_name) {
  std::vector<NamedParameters> all;
  for (const core::bloom::LayoutRow& row : core::bloom::layout_rows()) {
    if (!row.clears_bits) continue;
    core::bloom::FilterParameters parameters;
    parameters.layout = row.id;
    if (!row.takes_region_bits) {
      all.push_back({std::string(row.name), parameters});
      continue;
    }
    for (const int bits : region_bits) {
      parameters.region_bits = static_cast<uint8_t>(bits);
      all.push_back({fmt::format(fmt::runtime(region_name), row.name, bits), parameters});
    }
  }
  return all;
}

}  // namespace bench
