// SPDX-License-Identifier: MIT
#include "core/keyspace/rw_lock.h"

#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace core::keyspace {
namespace {

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Spins for some microseconds, then yields a few times, because the holder may need this processor.
// Returns true as soon as `try_now` succeeds.
template <class TryNow>
bool spin(TryNow&& try_now) {
  constexpr int kSpins = 128;
  constexpr int kYields = 4;
  for (int i = 0; i < kSpins; ++i) {
    if (try_now()) return true;
    pause();
  }
  for (int i = 0; i < kYields; ++i) {
    std::this_thread::yield();
    if (try_now()) return true;
  }
  return false;
}

}  // namespace

template <class TryNow>
void RwLock::lock_with(const TryNow& try_now, uint32_t blocking_bits) {
  if (spin(try_now)) return;
  parked_.fetch_add(1, std::memory_order_seq_cst);
  while (!try_now()) {
    const uint32_t state = state_.load(std::memory_order_seq_cst);
    if ((state & blocking_bits) != 0) state_.wait(state, std::memory_order_seq_cst);
  }
  parked_.fetch_sub(1, std::memory_order_relaxed);
}

void RwLock::lock_slowly() {
  const auto announce_and_try = [this] {
    if (try_lock()) return true;
    if ((state_.load(std::memory_order_relaxed) & kWaiting) == 0) {
      state_.fetch_or(kWaiting, std::memory_order_relaxed);
    }
    return false;
  };
  lock_with(announce_and_try, ~kWaiting);
}

void RwLock::lock_shared_slowly() {
  lock_with([this] { return try_lock_shared(); }, kWriter | kWaiting);
}

}  // namespace core::keyspace
