// SPDX-License-Identifier: MIT
//
// RwLock: a reader/writer lock for critical sections of microseconds. It spins before it sleeps,
// because sleep and wake-up of a thread take longer than such a section. A waiting writer takes
// precedence over new readers, so that readers of a hot key cannot starve it.
//
// Invariants: the lock is not recursive, so a thread that holds it in any mode must not lock it
// again. The low bits of `state_` count readers. A writer holds the lock alone.
// Thread safety: all members may be called from any thread.
// Source: the futex behind std::atomic::wait; Drepper 2011, "Futexes Are Tricky", for parking.
#pragma once

#include <atomic>
#include <cstdint>

namespace core::keyspace {

class RwLock {
 public:
  RwLock() = default;
  RwLock(const RwLock&) = delete;
  RwLock& operator=(const RwLock&) = delete;

  void lock() {
    uint32_t free = 0;
    if (!state_.compare_exchange_strong(free, kWriter, std::memory_order_acquire)) lock_slowly();
  }
  void unlock() {
    ++write_count_;
    // unlock() keeps the bit kWaiting, so that waiting writers still take precedence over new
    // readers.
    state_.fetch_and(~kWriter, std::memory_order_seq_cst);
    wake_parked();
  }

  void lock_shared() {
    uint32_t state = state_.load(std::memory_order_relaxed);
    if ((state & (kWriter | kWaiting)) != 0 ||
        !state_.compare_exchange_strong(state, state + 1, std::memory_order_acquire)) {
      lock_shared_slowly();
    }
  }
  void unlock_shared() {
    state_.fetch_sub(1, std::memory_order_seq_cst);
    wake_parked();
  }

  // Returns how many exclusive holds of the lock have ended. If two holds see the same number, no
  // other thread has changed the guarded data between them. REQUIRES: the caller holds the lock in
  // any mode.
  uint64_t write_count() const { return write_count_; }

  // The functions whose names begin with try_ never wait.
  bool try_lock() {
    uint32_t state = state_.load(std::memory_order_relaxed);
    // Acquiring the lock clears kWaiting; other waiting writers set it again.
    return (state & ~kWaiting) == 0 &&
           state_.compare_exchange_strong(state, kWriter, std::memory_order_acquire);
  }
  bool try_lock_shared() {
    uint32_t state = state_.load(std::memory_order_relaxed);
    return (state & (kWriter | kWaiting)) == 0 &&
           state_.compare_exchange_strong(state, state + 1, std::memory_order_acquire);
  }

 private:
  static constexpr uint32_t kWriter = 1U << 31;
  static constexpr uint32_t kWaiting = 1U << 30;  // a writer waits, so no new readers are admitted

  void wake_parked() {
    if (parked_.load(std::memory_order_seq_cst) != 0) state_.notify_all();
  }
  // Spins, then sleeps, until try_now() returns true. While the state has one of `blocking_bits`,
  // the lock cannot be acquired.
  template <class TryNow>
  void lock_with(const TryNow& try_now, uint32_t blocking_bits);
  void lock_slowly();
  void lock_shared_slowly();

  std::atomic<uint32_t> state_{0};
  uint64_t write_count_ = 0;
  std::atomic<uint32_t> parked_{0};  // number of threads that sleep or are about to sleep
};

}  // namespace core::keyspace
