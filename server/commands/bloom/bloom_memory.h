// SPDX-License-Identifier: MIT
//
// FilterBudget: the memory by which one filter may still grow. This is the smaller of the server's
// free memory and the part of bf.bloom-memory-usage-limit that the filter does not use yet. A
// filter that already has bf.bloom_max_filters layers cannot grow.
//
// Invariants: the limit applies to the whole filter, as BF.INFO's Size counts it.
// Thread safety: must be used under the filter's exclusive lock.
#pragma once

#include <string_view>

#include "core/bloom/scalable_filter.h"
#include "core/memory/memory_budget.h"
#include "server/dispatch/admission.h"

namespace server {

inline constexpr std::string_view kFilterTooLarge =
    "ERR operation exceeds bloom object memory limit";

inline constexpr std::string_view kCannotInsert = "ERR problem inserting into filter";

inline constexpr std::string_view kTooManyLayers =
    "ERR bloom object reached the maximum number of filters (bf.bloom_max_filters)";

inline constexpr std::string_view kWindowNeedsCapacity =
    "ERR the generations of this window need too many layers: set a higher CAPACITY";

class Context;

class FilterBudget final : public core::MemoryBudget {
 public:
  // The filter must outlive the budget.
  FilterBudget(const Context& ctx, const core::bloom::ScalableFilter& filter);

  uint64_t available_bytes() const override;
  bool fits(uint64_t bytes) const override;
  const core::MemoryBudget& whole() const override { return admission_.memory(); }

  // Returns why an item could not be added. REQUIRES: an add failed.
  std::string_view refusal() const;

 private:
  uint64_t left_of_limit_bytes() const;

  const Admission admission_;
  const core::bloom::ScalableFilter& filter_;
  mutable std::string_view refusal_ = kCannotInsert;
};

// LoadBudget: the memory budget for loading a filter. It is the smaller of the memory that the
// server can obtain and bf.bloom-memory-usage-limit.
class LoadBudget final : public core::MemoryBudget {
 public:
  explicit LoadBudget(const Admission& admission);
  uint64_t available_bytes() const override;
  bool fits(uint64_t bytes) const override;
  // Returns whether the whole filter, with all generations of a window, keeps the limit. fits() was
  // asked for its arrays only.
  bool admits(const core::bloom::ScalableFilter& filter) const;
  // Returns why the filter did not fit. REQUIRES: the filter did not fit.
  std::string_view refusal() const;

 private:
  const Admission admission_;
  const uint64_t memory_bytes_;
  const uint64_t limit_bytes_;
  mutable bool memory_was_short_ = false;
};

// Creates a filter if the server's free memory and the limit for one filter suffice. Errors: the
// text names the limit that was exceeded.
core::Result<std::unique_ptr<core::bloom::ScalableFilter>> create_filter(
    const Admission& admission, const core::bloom::FilterParameters& parameters,
    int64_t window_start_ms);

}  // namespace server
