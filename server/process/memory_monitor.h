// SPDX-License-Identifier: MIT
//
// MemoryMonitor: used memory, and whether more may be allocated.
//
// Used memory is the allocator's figure plus the mapped bit arrays of filters, untouched pages
// included: they were promised. Deleted values that wait to be freed do not count: their deletion
// was acknowledged.
// Available memory is measured by the periodic task; in between it is lowered by the bit arrays
// made since, because asking the system takes longer than making a filter. Invariants:
// available_bytes() exceeds the true figure by at most the non-array allocations since the last
// measurement. fits() measures anew before it refuses. Thread safety: all members may be called
// from any thread. Source: server/process/allocator.h, proc(5).
#pragma once

#include <atomic>
#include <cstdint>

#include "core/memory_budget.h"

namespace core::keyspace {
class Reclaimer;
}  // namespace core::keyspace

namespace server {

// Frees memory that is in use, by evicting keys.
class RoomMaker {
 public:
  // Before a command that may need memory, with the limit exceeded. False: it must be refused. The
  // caller holds no stripe.
  virtual bool make_room() = 0;
  // Makes `bytes` fit below the limit, or begins to: true when they may be taken. The caller may
  // hold stripes.
  virtual bool make_room_for(uint64_t bytes) = 0;
  // The most that make_room_for() could be asked for now.
  virtual uint64_t obtainable_bytes() const = 0;

 protected:
  ~RoomMaker() = default;
};

class MemoryMonitor final : public core::MemoryBudget {
 public:
  MemoryMonitor();

  // Its pending values do not count as used. It must outlive the monitor's use.
  void set_reclaimer(const core::keyspace::Reclaimer* reclaimer) { reclaimer_ = reclaimer; }
  // Asked before anything is refused. It must outlive the monitor's use; to be set before other
  // threads start.
  void set_room_maker(RoomMaker* room_maker) { room_maker_ = room_maker; }
  // 0 is no limit.
  void set_limit(uint64_t limit_bytes) {
    limit_bytes_.store(limit_bytes);
    measure_available();
  }
  uint64_t limit_bytes() const { return limit_bytes_.load(std::memory_order_relaxed); }

  // Measures anew; about a microsecond, so for big requests, INFO and the periodic task.
  uint64_t refresh() const;
  // As of the last refresh().
  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  uint64_t peak_bytes() const { return peak_bytes_.load(std::memory_order_relaxed); }
  uint64_t startup_bytes() const { return startup_bytes_; }
  uint64_t machine_bytes() const { return machine_bytes_; }

  uint64_t available_bytes() const override;
  bool fits(uint64_t bytes) const override;
  // Memory that one request may get at most, evicted keys included. Costs as much as asking does.
  uint64_t obtainable_bytes() const;
  // Asks the system, and becomes the base of available_bytes(). Some 30 microseconds.
  uint64_t measure_available() const;
  // How often that was done.
  uint64_t measurement_count() const { return measurements_.load(std::memory_order_relaxed); }

  // As RoomMaker: false when nothing may be evicted.
  bool make_room() const { return room_maker_ != nullptr && room_maker_->make_room(); }

  // True when a command that may grow memory must be refused.
  bool over_limit() const {
    const uint64_t limit = limit_bytes();
    if (limit == 0) return false;
    // Measured anew every so many calls, so that the figure cannot lag far behind.
    if (questions_.fetch_add(1, std::memory_order_relaxed) % kQuestionsPerRefresh == 0) refresh();
    return used_bytes() > limit;
  }

 private:
  static constexpr uint32_t kQuestionsPerRefresh = 64;
  // Part of what was available that arrays may take before it is measured anew.
  static constexpr uint64_t kPartPerMeasurement = 8;

  uint64_t free_of_machine(uint64_t used_bytes) const;

  const core::keyspace::Reclaimer* reclaimer_ = nullptr;
  RoomMaker* room_maker_ = nullptr;
  std::atomic<uint64_t> limit_bytes_{0};
  mutable std::atomic<uint64_t> used_bytes_{0};
  mutable std::atomic<uint64_t> peak_bytes_{0};
  mutable std::atomic<uint32_t> questions_{0};
  mutable std::atomic<uint64_t> measurements_{0};
  // The sums of all arrays ever made (granted_array_bytes()) at which memory would be used up, by
  // the last measurement, and from which on that is too old.
  mutable std::atomic<uint64_t> granted_max_{0};
  mutable std::atomic<uint64_t> granted_until_{0};
  uint64_t machine_bytes_;
  uint64_t startup_bytes_;
};

// The resident set of this process, of which `shared_bytes` are shared mappings.
struct ResidentMemory {
  uint64_t total_bytes = 0;
  uint64_t shared_bytes = 0;
};
ResidentMemory resident_memory();

// Memory that the machine could give to a new process; unlimited where it cannot be known.
uint64_t free_machine_bytes();

}  // namespace server
