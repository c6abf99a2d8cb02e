// SPDX-License-Identifier: MIT
//
// MemoryMonitor: how much memory is used, and whether more may be.
//
// Used memory is what the allocator has handed out plus the mapped bit arrays of filters, whose
// untouched pages are counted too: they were promised.
// Invariants: available_bytes() never exceeds what maxmemory or the machine leaves.
// Thread safety: all members may be called from any thread.
// Source: server/allocator.h, proc(5).
#pragma once

#include <atomic>
#include <cstdint>

#include "core/memory_budget.h"

namespace server {

class MemoryMonitor final : public core::MemoryBudget {
 public:
  MemoryMonitor();

  // 0 is no limit.
  void set_limit(uint64_t limit_bytes) { limit_bytes_.store(limit_bytes); }
  uint64_t limit_bytes() const { return limit_bytes_.load(std::memory_order_relaxed); }

  // Measures anew; about a microsecond, so for big requests, INFO and the periodic task.
  uint64_t refresh() const;
  // As of the last refresh().
  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  uint64_t peak_bytes() const { return peak_bytes_.load(std::memory_order_relaxed); }
  uint64_t startup_bytes() const { return startup_bytes_; }
  uint64_t machine_bytes() const { return machine_bytes_; }

  uint64_t available_bytes() const override;

  // True when a command that may grow memory must be refused.
  bool over_limit() const {
    const uint64_t limit = limit_bytes();
    if (limit == 0) return false;
    // Every so many questions the figure is measured anew, so that it cannot be outrun.
    if (questions_.fetch_add(1, std::memory_order_relaxed) % kQuestionsPerRefresh == 0) refresh();
    return used_bytes() > limit;
  }

 private:
  static constexpr uint32_t kQuestionsPerRefresh = 64;

  std::atomic<uint64_t> limit_bytes_{0};
  mutable std::atomic<uint64_t> used_bytes_{0};
  mutable std::atomic<uint64_t> peak_bytes_{0};
  mutable std::atomic<uint32_t> questions_{0};
  uint64_t machine_bytes_;
  uint64_t startup_bytes_;
};

// The resident set of this process, of which `shared_bytes` are shared mappings.
struct ResidentMemory {
  uint64_t total_bytes = 0;
  uint64_t shared_bytes = 0;
};
ResidentMemory resident_memory();

}  // namespace server
