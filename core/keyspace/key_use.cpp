// SPDX-License-Identifier: MIT
#include "core/keyspace/key_use.h"

#include <algorithm>
#include <limits>

#include "core/split_mix.h"

namespace core::keyspace {
namespace {

// Returns random bits from a thread-local generator.
uint32_t random_bits() {
  thread_local SplitMix64 random(reinterpret_cast<uintptr_t>(&random));
  return static_cast<uint32_t>(random.draw() >> 32);
}

}  // namespace

uint8_t KeyUse::count(uint32_t now_s, const UseRules& rules) const {
  constexpr uint32_t kMinute = 60;
  if (rules.decay_minutes == 0) return stored_count();
  // Number of times that the clock has reached a full minute since the last use, as in Redis.
  const uint32_t minutes = (clock_s() % kMinute + idle_s(now_s)) / kMinute;
  const uint32_t lost = minutes / rules.decay_minutes;
  return static_cast<uint8_t>(stored_count() - std::min<uint32_t>(stored_count(), lost));
}

KeyUse KeyUse::used(uint32_t now_s, const UseRules& rules) const {
  uint8_t counted = count(now_s, rules);
  const uint64_t base = counted > kFirstUseCount ? counted - kFirstUseCount : 0;
  const uint64_t rarity = base * rules.log_factor + 1;
  const bool counts = random_bits() * rarity <= std::numeric_limits<uint32_t>::max();
  if (counts && counted != std::numeric_limits<uint8_t>::max()) ++counted;
  return {now_s, counted};
}

}  // namespace core::keyspace
