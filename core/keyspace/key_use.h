// SPDX-License-Identifier: MIT
//
// KeyUse: the time of a key's last use and about how often it was used. The time is a clock of 24
// bits in seconds, which wraps after 194 days; the count is a logarithmic counter of 8 bits. Both
// are always kept, so that the eviction policy may change at any time.
//
// Invariants: a use increments the counter with probability 1 / (1 + log_factor * (count - 5)), or
// with certainty if the count is at most 5. The counter is decremented once for every decay_minutes
// since the last use. A read returns the decremented value, and the next use stores it.
// Thread safety: concurrent reads of a value are safe.
// Source: Morris 1978, "Counting Large Numbers of Events in Small Registers"; Redis' LFU.
#pragma once

#include <cstdint>

#include "core/keyspace/entry.h"

namespace core::keyspace {

// The options `lfu-log-factor` and `lfu-decay-time`.
struct UseRules {
  uint32_t log_factor = 10;
  uint32_t decay_minutes = 1;  // minutes; 0: the counter never decays
};

class KeyUse {
 public:
  static constexpr uint32_t kClockMask = 0xFFFFFF;
  // Longest idle time that is reported. The idle time is computed as the clock minus the access
  // time, modulo 2^24. A result above this limit means that the access time is later than the
  // clock, by at most an hour.
  static constexpr uint32_t kIdleMaxS = kClockMask - 3600;

  constexpr KeyUse(uint32_t clock_s, uint8_t count) : bits_(clock_s << kUseCountBits | count) {}
  explicit KeyUse(const Entry& entry) : bits_(entry.use_bits()) {}
  // Returns the KeyUse of a key that has been idle for `idle_s` seconds, but at most kIdleMaxS.
  static constexpr KeyUse idle_for(uint64_t idle_s, uint32_t now_s, uint8_t count) {
    return {now_s - static_cast<uint32_t>(idle_s < kIdleMaxS ? idle_s : kIdleMaxS), count};
  }

  constexpr uint32_t bits() const { return bits_; }
  constexpr uint32_t clock_s() const { return bits_ >> kUseCountBits; }
  // Use count that was stored at the last use, without the decay since then.
  constexpr uint8_t stored_count() const { return static_cast<uint8_t>(bits_); }

  // Seconds since the last use. A thread reads the clock once per batch of commands, so it may see
  // a use in the near future. That counts as 0 seconds.
  constexpr uint32_t idle_s(uint32_t now_s) const {
    const uint32_t elapsed_s = (now_s - clock_s()) & kClockMask;
    return elapsed_s > kIdleMaxS ? 0 : elapsed_s;
  }
  // Use count after the decay up to now_s.
  uint8_t count(uint32_t now_s, const UseRules& rules) const;
  // Returns the KeyUse after one more use of the key.
  KeyUse used(uint32_t now_s, const UseRules& rules) const;

 private:
  uint32_t bits_;
};

}  // namespace core::keyspace
