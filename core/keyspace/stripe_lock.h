// SPDX-License-Identifier: MIT
//
// StripeLock: holds a set of stripe locks, all shared or all exclusive, until it is destroyed.
//
// Invariants: all threads take stripes in ascending order, so two commands with several keys cannot
// deadlock. A thread waits for a stripe only while it holds no other StripeLock. With kSkip it may
// also take stripes that are free while it holds others.
// Thread safety: a lock belongs to the thread that took it.
#pragma once

#include <cstdint>
#include <utility>

#include "core/keyspace/key_hash.h"

namespace core::keyspace {

struct Stripe;

enum class LockMode : uint8_t { kShared, kExclusive };

// States whether to wait for a locked stripe or to skip it. kSkip is safe even if the calling
// thread itself has locked the stripe.
enum class StripeWait : uint8_t { kWait, kSkip };

// A set of stripes, as one bit per stripe.
using StripeMask = uint64_t;
inline constexpr StripeMask kAllStripes = ~StripeMask{0};
static_assert(kStripeCount == 64, "a mask has one bit per stripe");

class StripeLock {
 public:
  StripeLock() = default;
  StripeLock(Stripe* stripes, StripeMask mask, LockMode mode);
  // Takes all stripes of the mask, or no stripe if one of them would require waiting.
  static StripeLock try_take(Stripe* stripes, StripeMask mask, LockMode mode);
  StripeLock(StripeLock&& other) noexcept
      : stripes_(other.stripes_), mask_(std::exchange(other.mask_, 0)), mode_(other.mode_) {}
  StripeLock& operator=(StripeLock&& other) noexcept;
  ~StripeLock() { unlock(); }

  // Releases the stripes now. Otherwise the destructor releases them.
  void unlock();
  StripeMask mask() const { return mask_; }
  LockMode mode() const { return mode_; }

 private:
  Stripe* stripes_ = nullptr;
  StripeMask mask_ = 0;
  LockMode mode_ = LockMode::kShared;
};

}  // namespace core::keyspace
