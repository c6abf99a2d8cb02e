// SPDX-License-Identifier: MIT
//
// MemoryMonitor: used memory, and whether more may be allocated.
//
// Used memory is the sum of its Parts. Each part is counted where it is taken and given back, so
// the sum is exact at any moment. Mapped bit arrays count with their untouched pages, which were
// promised, and freed arrays as long as they stay for a forked child. Deleted values that wait to
// be freed do not count, because their deletion was acknowledged. Exempt memory counts as used, but
// not against the limit, because evicting keys does not free it or makes it grow.
//
// Available memory is measured by the periodic task, because asking the system takes longer than
// making a filter. In between it is lowered by the bit arrays made since.
//
// Invariants: available_bytes() exceeds the true figure by at most the non-array allocations since
// the last measurement. fits() measures again before it refuses. over_limit() is wrong by
// kUnseenBytesMax at most, and near the limit by nothing that the calling thread has allocated.
// Thread safety: all members may be called from any thread.
// Source: server/process/allocator.h, core/thread_heap.h, proc(5).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/memory_budget.h"

namespace core::keyspace {
class Reclaimer;
}  // namespace core::keyspace

namespace server {

// Frees memory that is in use, by evicting keys.
class RoomMaker {
 public:
  // Before a command, with the limit exceeded: makes `bytes` fit below it, or begins to. False:
  // nothing may be evicted. The caller holds no stripe.
  virtual bool make_room(uint64_t bytes) = 0;
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
  // Bytes of exempt memory, asked at each sum; from any thread. To be set before other threads
  // start.
  void set_exempt(std::function<uint64_t()> exempt_bytes) {
    exempt_bytes_ = std::move(exempt_bytes);
  }
  // 0 is no limit.
  void set_limit(uint64_t limit_bytes) {
    limit_bytes_.store(limit_bytes);
    measure_available();
  }
  uint64_t limit_bytes() const { return limit_bytes_.load(std::memory_order_relaxed); }

  // The parts of used memory.
  struct Parts {
    uint64_t heap_bytes = 0;
    uint64_t array_bytes = 0;       // mapped bit arrays, touched or not
    uint64_t kept_array_bytes = 0;  // freed arrays that a forked child may read
    uint64_t buffer_bytes = 0;      // mapped buffers
    uint64_t pending_bytes = 0;     // deleted values that wait to be freed; no longer used
    uint64_t exempt_bytes = 0;      // used, but not subject to the limit

    uint64_t held() const { return heap_bytes + array_bytes + kept_array_bytes + buffer_bytes; }
    uint64_t used() const { return held() - std::min(held(), pending_bytes); }
    // Compared with the limit.
    uint64_t limited() const { return used() - std::min(used(), exempt_bytes); }
    // Without the arrays that no eviction could free now.
    uint64_t evictable() const { return limited() - std::min(limited(), kept_array_bytes); }
  };
  Parts parts() const;
  // The parts; the figures below follow them.
  Parts measure() const;
  // Adds the parts up; some ten nanoseconds for each thread.
  uint64_t refresh() const { return measure().used(); }
  // As of the last measure().
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
  // Several times a second: corrects what was counted by the allocator's own figure, and measures.
  void tick() const;
  // How often available memory was measured.
  uint64_t measurement_count() const { return measurements_.load(std::memory_order_relaxed); }

  // As RoomMaker: false when nothing may be evicted.
  bool make_room(uint64_t bytes) const {
    return room_maker_ != nullptr && room_maker_->make_room(bytes);
  }

  // Whether used memory, with `extra_bytes` that are about to be allocated, exceeds the limit.
  // Costs two loads as long as the calling thread has allocated little since its last question.
  bool over_limit(uint64_t extra_bytes = 0) const {
    const uint64_t limit = limit_bytes();
    return limit != 0 && (extra_bytes != 0 || may_have_grown(limit)) && look(limit, extra_bytes);
  }

 private:
  // All threads together may allocate so much before over_limit() adds the parts up again.
  static constexpr uint64_t kUnseenBytesMax = uint64_t{512} << 10;
  // Part of what was available that arrays may take before it is measured anew.
  static constexpr uint64_t kPartPerMeasurement = 8;

  // A thread's last comparison of used memory with the limit.
  struct Look {
    const MemoryMonitor* monitor = nullptr;
    uint64_t limit_bytes = 0;
    uint64_t heap_bytes = 0;            // the thread's own
    uint64_t allowed_growth_bytes = 0;  // 0: the next question needs a new look
  };
  static Look& last_look() {
    thread_local Look look;
    return look;
  }

  bool may_have_grown(uint64_t limit) const;
  bool look(uint64_t limit, uint64_t extra_bytes) const;
  uint64_t free_of_machine(uint64_t used_bytes) const;

  const core::keyspace::Reclaimer* reclaimer_ = nullptr;
  RoomMaker* room_maker_ = nullptr;
  std::function<uint64_t()> exempt_bytes_;
  std::atomic<uint64_t> limit_bytes_{0};
  mutable std::atomic<uint64_t> used_bytes_{0};
  mutable std::atomic<uint64_t> peak_bytes_{0};
  mutable std::atomic<uint64_t> measurements_{0};
  // The sums of all arrays ever made (granted_array_bytes()) at which memory would be used up, by
  // the last measurement, and from which on that is too old.
  mutable std::atomic<uint64_t> granted_max_{0};
  mutable std::atomic<uint64_t> granted_until_{0};
  uint64_t machine_bytes_;
  uint64_t startup_bytes_ = 0;
};

// The resident set of this process.
struct ResidentMemory {
  uint64_t total_bytes = 0;
  uint64_t shared_bytes = 0;  // of shared mappings; among them:
  uint64_t file_bytes = 0;    // the program and its libraries
};
ResidentMemory resident_memory();

// Memory that the machine could give to a new process; unlimited where it cannot be known.
uint64_t free_machine_bytes();

}  // namespace server
