// SPDX-License-Identifier: MIT
#include "core/keyspace/stripe_lock.h"

#include <bit>

#include "core/keyspace/keyspace.h"

#ifdef BLOOMERY_TSAN
// ThreadSanitizer's deadlock detector aborts if a thread holds more than 64 locks. A thread that
// holds all 64 stripes and one other lock exceeds this limit, so the detector is switched off. Data
// races are still found. The environment variable TSAN_OPTIONS overrides the default options.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
  return "detect_deadlocks=0";
}
#endif

namespace core::keyspace {

StripeLock::StripeLock(Stripe* stripes, StripeMask mask, LockMode mode)
    : stripes_(stripes), mask_(mask), mode_(mode) {
  for (; mask != 0; mask &= mask - 1) {
    RwLock& lock = stripes[std::countr_zero(mask)].lock;
    if (mode == LockMode::kShared) {
      lock.lock_shared();
    } else {
      lock.lock();
    }
  }
}

StripeLock StripeLock::try_take(Stripe* stripes, StripeMask mask, LockMode mode) {
  StripeLock taken;
  taken.stripes_ = stripes;
  taken.mode_ = mode;
  for (; mask != 0; mask &= mask - 1) {
    RwLock& lock = stripes[std::countr_zero(mask)].lock;
    const bool is_taken = mode == LockMode::kShared ? lock.try_lock_shared() : lock.try_lock();
    if (!is_taken) return {};
    taken.mask_ |= mask & -mask;
  }
  return taken;
}

StripeLock& StripeLock::operator=(StripeLock&& other) noexcept {
  if (this != &other) {
    unlock();
    stripes_ = other.stripes_;
    mask_ = std::exchange(other.mask_, 0);
    mode_ = other.mode_;
  }
  return *this;
}

void StripeLock::unlock() {
  for (; mask_ != 0; mask_ &= mask_ - 1) {
    RwLock& lock = stripes_[std::countr_zero(mask_)].lock;
    if (mode_ == LockMode::kShared) {
      lock.unlock_shared();
    } else {
      lock.unlock();
    }
  }
}

}  // namespace core::keyspace
