// SPDX-License-Identifier: MIT
//
// MemoryMonitor: measures the memory that this server uses, and decides whether more may be
// allocated.
//
// Used memory is the sum of its Parts. Each part is counted where it is allocated and freed, so the
// sum is exact at any moment. Mapped bit arrays count with their untouched pages, which are
// reserved. Freed arrays count as long as a forked child process may read them. Deleted values that
// wait to be freed do not count, because their deletion was acknowledged. Memory that is exempt
// from maxmemory counts as used. Examples are the backlog that slow replicas need, and the buffers
// of the append log and of evicted clients. Eviction of keys could not free such memory, and may
// even add to it.
//
// Available memory is measured by the periodic task, because querying the system takes longer than
// creating a filter. Between two measurements, the sizes of newly created bit arrays are subtracted
// from the last measured value.
//
// Invariants: available_bytes() exceeds the true value by at most the memory, other than bit
// arrays, that was allocated since the last measurement. fits() measures again before it returns
// false. The error of over_limit() is at most kUnseenBytesMax. Near the limit, over_limit()
// includes everything that the calling thread has allocated.
// Thread safety: all members may be called from any thread.
// Source: server/base/process/allocator.h, core/memory/thread_heap.h, proc(5).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/memory/memory_budget.h"

namespace core::keyspace {
class Reclaimer;
}  // namespace core::keyspace

namespace server {

// RoomMaker frees memory that is in use, by evicting keys.
class RoomMaker {
 public:
  // Called before a command, while the limit is exceeded. Evicts keys until an allocation of
  // `bytes` would stay below the limit, or until a time limit is reached. Returns false if no key
  // may be evicted. REQUIRES: the caller holds no stripe lock.
  virtual bool make_room(uint64_t bytes) = 0;
  // Evicts keys until an allocation of `bytes` would stay below the limit, or until a time limit is
  // reached. Returns whether the caller may allocate `bytes`. The caller may hold stripe locks.
  virtual bool make_room_for(uint64_t bytes) = 0;
  // Returns the largest size that make_room_for() can provide now.
  virtual uint64_t obtainable_bytes() const = 0;

 protected:
  ~RoomMaker() = default;
};

class MemoryMonitor final : public core::MemoryBudget {
 public:
  MemoryMonitor();

  // Sets the reclaimer, whose pending values do not count as used. The reclaimer must exist as long
  // as the monitor is used. Must be called before other threads start.
  void set_reclaimer(const core::keyspace::Reclaimer* reclaimer) { reclaimer_ = reclaimer; }
  // Sets the RoomMaker, which evicts keys before a request is rejected. The RoomMaker must exist as
  // long as the monitor is used. Must be called before other threads start.
  void set_room_maker(RoomMaker* room_maker) { room_maker_ = room_maker; }
  // Sets the function that returns the bytes of exempt memory. The function is called whenever used
  // memory is measured, from any thread. Must be called before other threads start.
  void set_exempt(std::function<uint64_t()> exempt_bytes) {
    exempt_bytes_ = std::move(exempt_bytes);
  }
  // Sets the limit on used memory that is not exempt; 0 means no limit.
  void set_limit(uint64_t limit_bytes) {
    limit_bytes_.store(limit_bytes);
    measure_available();
  }
  uint64_t limit_bytes() const { return limit_bytes_.load(std::memory_order_relaxed); }

  // The measured amounts of memory, from which used(), limited() and evictable() are computed.
  struct Parts {
    uint64_t heap_bytes = 0;
    uint64_t array_bytes = 0;       // bytes of mapped bit arrays, touched or not
    uint64_t kept_array_bytes = 0;  // bytes of freed arrays that a forked child may still read
    uint64_t buffer_bytes = 0;      // bytes of mapped buffers

    // Bytes of deleted values that wait to be freed. used() subtracts them.
    uint64_t pending_bytes = 0;
    uint64_t exempt_bytes = 0;  // bytes of used memory that the memory limit does not count

    uint64_t held() const { return heap_bytes + array_bytes + kept_array_bytes + buffer_bytes; }
    uint64_t used() const { return held() - std::min(held(), pending_bytes); }
    // Returns the number of bytes to which the memory limit applies: used memory without exempt
    // memory.
    uint64_t limited() const { return used() - std::min(used(), exempt_bytes); }
    // Returns the bytes of limited() that eviction may be able to free. These are all of them
    // except deleted arrays that a forked child may still read.
    uint64_t evictable() const { return limited() - std::min(limited(), kept_array_bytes); }
  };
  Parts parts() const;
  // Measures the parts of used memory. Functions such as used_bytes() return the stored results.
  Parts measure() const;
  // Adds up the parts of used memory, and returns the sum. The call takes about ten nanoseconds per
  // thread.
  uint64_t refresh() const { return measure().used(); }
  // Returns the result of the last measure().
  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  uint64_t peak_bytes() const { return peak_bytes_.load(std::memory_order_relaxed); }
  uint64_t startup_bytes() const { return startup_bytes_; }
  uint64_t machine_bytes() const { return machine_bytes_; }

  uint64_t available_bytes() const override;
  bool fits(uint64_t bytes) const override;
  // Returns the most memory that one request may get if keys are evicted. The call takes about 30
  // microseconds, because it queries the system.
  uint64_t obtainable_bytes() const;
  // Queries the system, and returns the available memory. Until the next measurement,
  // available_bytes() subtracts new bit arrays from that value. The call takes about 30
  // microseconds.
  uint64_t measure_available() const;
  // Must be called several times a second. Measures the memory, and corrects the counts by the
  // allocator's statistics.
  void tick() const;

  // Evicts keys by RoomMaker::make_room(). Returns false if no key may be evicted.
  bool make_room(uint64_t bytes) const {
    return room_maker_ != nullptr && room_maker_->make_room(bytes);
  }

  // Bytes that the calling thread is about to allocate. While the object exists, other threads that
  // want to allocate leave these bytes free. So threads that check the limit at the same time do
  // not exceed it together. Must be destroyed on its thread, after the allocation.
  class Reservation {
   public:
    Reservation(const MemoryMonitor& monitor, uint64_t bytes) : monitor_(monitor), bytes_(bytes) {
      if (bytes_ == 0) return;
      own_bytes() += bytes_;
      monitor_.reserved_bytes_ += bytes_;
    }
    ~Reservation() {
      if (bytes_ == 0) return;
      monitor_.reserved_bytes_ -= bytes_;
      own_bytes() -= bytes_;
    }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    // Returns the bytes that this thread has reserved.
    static uint64_t& own_bytes() {
      thread_local uint64_t bytes = 0;
      return bytes;
    }

   private:
    const MemoryMonitor& monitor_;
    const uint64_t bytes_;
  };
  // Returns the bytes that other threads have reserved. Must be read before used memory is
  // measured: bytes that are allocated in between then count twice rather than not at all.
  uint64_t reserved_by_others() const {
    const uint64_t all = reserved_bytes_;
    return all - std::min(all, Reservation::own_bytes());
  }

  // Returns whether the used memory that is not exempt, plus `extra_bytes` to be allocated, exceeds
  // the limit. Reserved bytes count only if `extra_bytes` is not 0. If `extra_bytes` is 0 and the
  // calling thread has allocated little since it last measured used memory, the function only reads
  // a few variables.
  bool over_limit(uint64_t extra_bytes = 0) const {
    const uint64_t limit = limit_bytes();
    return limit != 0 && (extra_bytes != 0 || may_have_grown(limit)) && look(limit, extra_bytes);
  }

 private:
  // Limit on the bytes that all threads together may allocate before over_limit() measures used
  // memory again.
  static constexpr uint64_t kUnseenBytesMax = uint64_t{512} << 10;
  // Available memory is measured again once new arrays have used an eighth of it.
  static constexpr uint64_t kPartPerMeasurement = 8;

  // One thread's last comparison of used memory with the limit.
  struct Look {
    const MemoryMonitor* monitor = nullptr;
    uint64_t limit_bytes = 0;
    uint64_t heap_bytes = 0;  // heap bytes of the thread at the time of the comparison

    // Bytes that the thread may allocate before the next check; 0 forces a check.
    uint64_t allowed_growth_bytes = 0;
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
  // Thresholds for the total of all arrays ever made (granted_array_bytes()), computed by the last
  // measurement. When the total reaches granted_until_, available memory is measured again. At
  // granted_max_, no memory would be left.
  mutable std::atomic<uint64_t> granted_max_{0};
  mutable std::atomic<uint64_t> granted_until_{0};
  mutable std::atomic<uint64_t> reserved_bytes_{0};
  uint64_t machine_bytes_;
  uint64_t startup_bytes_ = 0;
};

// The resident memory of this process.
struct ResidentMemory {
  uint64_t total_bytes = 0;
  uint64_t shared_bytes = 0;  // bytes of shared mappings, including file_bytes
  uint64_t file_bytes = 0;    // bytes of the program and its libraries
};
ResidentMemory resident_memory();

// Returns the memory that the machine can give to a new process; the maximum of uint64_t if the
// system does not report it.
uint64_t free_machine_bytes();

}  // namespace server
