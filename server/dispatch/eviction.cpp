// SPDX-License-Identifier: MIT
#include "server/dispatch/eviction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/keyspace/reclaimer.h"
#include "server/base/metrics/gauges.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/use_rules.h"

namespace server {

using core::keyspace::EvictionPolicy;
using core::keyspace::EvictionPool;
using core::keyspace::EvictionSettings;
using core::keyspace::LockMode;
using core::keyspace::StripeWait;

constexpr int64_t kUsualLimitUs = 500;
// The clock is read only once per this many keys, because reading the clock takes long in
// comparison with evicting a key.
constexpr int kKeysPerLook = 4;
// If an allocation would exceed the limit by more than kOverrunBytesMax, the eviction before it may
// take kPatience times its time limit.
constexpr uint64_t kOverrunBytesMax = uint64_t{512} << 10;
constexpr int64_t kPatience = 20;

EvictionPolicy Eviction::policy() const {
  return eviction_policy(parts_.config);
}

bool Eviction::is_exempt() const {
  return parts_.state.is_replica && parts_.config.flag(OptionId::kReplicaIgnoreMaxMemory);
}

bool Eviction::is_held_back() const {
  return parts_.state.availability.has(Availability::kLoading) || parts_.are_writes_held();
}

// Returns the time limit of evictions for one request. As in Redis it depends on
// maxmemory-eviction-tenacity: at most kUsualLimitUs for values up to 10, about two minutes for 99,
// and unlimited for 100.
int64_t Eviction::time_limit_us() const {
  constexpr int64_t kUsual = 10;
  constexpr int64_t kMost = 100;
  const int64_t tenacity = parts_.config.integer(OptionId::kMaxMemoryEvictionTenacity);
  if (tenacity <= kUsual) return kUsualLimitUs / kUsual * tenacity;
  if (tenacity >= kMost) return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(kUsualLimitUs *
                              std::pow(1.15, static_cast<double>(tenacity - kUsual)));
}

bool Eviction::exceeds_limit(uint64_t extra_bytes) const {
  const uint64_t limit = parts_.memory.limit_bytes();
  return limit != 0 && parts_.memory.measure().limited() + extra_bytes > limit;
}

uint64_t Eviction::excess_bytes(uint64_t extra_bytes) const {
  const uint64_t limit = parts_.memory.limit_bytes();
  if (limit == 0) return 0;
  const uint64_t reserved_bytes = extra_bytes == 0 ? 0 : parts_.memory.reserved_by_others();
  const uint64_t wanted = parts_.memory.parts().evictable() + extra_bytes + reserved_bytes;
  return wanted > limit ? wanted - limit : 0;
}

Eviction::Databases Eviction::databases(int64_t now_us, bool is_exact) const {
  constexpr int64_t kFreshUs = 10'000;
  const EvictionPolicy policy = this->policy();
  const std::scoped_lock lock(mutex_);
  const bool is_fresh = now_us - counted_us_ < kFreshUs && counted_for_ == policy;
  if (databases_ != nullptr && is_fresh && !is_exact) return databases_;
  auto found = std::make_shared<std::vector<unsigned>>();
  for (unsigned i = 0; i < parts_.keyspace.database_count(); ++i) {
    const uint64_t keys =
        is_volatile(policy) ? parts_.keyspace.expires_count(i) : parts_.keyspace.db_size(i);
    if (keys > 0) found->push_back(i);
  }
  counted_for_ = policy;
  counted_us_ = now_us;
  return databases_ = std::move(found);
}

bool Eviction::make_room(uint64_t bytes) {
  if (is_exempt() || is_held_back()) return true;
  const Outcome outcome = evict({bytes, StripeWait::kWait});
  // The `bytes` are not allocated yet. So the statistics record that the limit is exceeded only if
  // used memory without `bytes` exceeds it.
  const bool keeps_limit = outcome == Outcome::kDone || !exceeds_limit(0);
  record(keeps_limit ? Outcome::kDone : outcome);
  if (outcome == Outcome::kGoesOn) post_tick();
  return outcome != Outcome::kFailed;
}

uint64_t Eviction::obtainable_bytes() const {
  const uint64_t limit = parts_.memory.limit_bytes();
  if (limit == 0) return 0;
  if (is_exempt()) return std::numeric_limits<uint64_t>::max();
  if (policy() == EvictionPolicy::kNoEviction || is_held_back()) return 0;
  if (databases(parts_.clock.monotonic_us(), true)->empty()) return 0;
  // While used memory exceeds the limit by more than an eighth of the limit, only small allocations
  // are accepted. Rejecting small allocations would protect nothing, because every command may
  // store a string of this size without a check of the memory.
  constexpr uint64_t kPartInDebt = 8;
  constexpr uint64_t kSmallBytes = uint64_t{64} << 10;
  if (excess_bytes(0) > limit / kPartInDebt) return kSmallBytes;
  return limit - std::min(limit, parts_.memory.startup_bytes());
}

bool Eviction::make_room_for(uint64_t bytes) {
  if (bytes > obtainable_bytes()) return false;
  return is_exempt() || evict({bytes, StripeWait::kSkip}) != Outcome::kFailed;
}

void Eviction::tick() {
  if (!is_posted_ && go_on()) post_tick();
}

void Eviction::post_tick() {
  if (is_posted_.exchange(true)) return;
  parts_.post([this] {
    is_posted_ = false;
    tick();
  });
}

bool Eviction::go_on() {
  // Without a policy, arrays that a child may still read also cause refusals.
  const bool may_evict = policy() != EvictionPolicy::kNoEviction;
  const bool is_over = may_evict ? excess_bytes(0) > 0 : exceeds_limit(0);
  if (is_exempt() || !is_over) {
    record(Outcome::kDone);
    return false;
  }
  if (!may_evict || is_held_back()) return false;
  const Outcome outcome = evict({0, StripeWait::kWait});
  record(outcome);
  return outcome == Outcome::kGoesOn;
}

Eviction::Outcome Eviction::evict(const Order& order) {
  EvictionSettings settings;
  settings.policy = policy();
  if (settings.policy == EvictionPolicy::kNoEviction) {
    return exceeds_limit(order.extra_bytes) ? Outcome::kFailed : Outcome::kDone;
  }
  const uint64_t excess = excess_bytes(order.extra_bytes);
  if (excess == 0) return Outcome::kDone;
  settings.sample_size = static_cast<size_t>(parts_.config.integer(OptionId::kMaxMemorySamples));
  settings.now_s = static_cast<uint32_t>(parts_.clock.wall_ms() / 1000);
  settings.wait = order.wait;
  settings.rules = use_rules(parts_.config);
  Slice slice{parts_.clock.monotonic_us(), time_limit_us(), excess};
  const Outcome outcome = evict_until(settings, order.extra_bytes, slice);
  if (slice.keys < kKeysPerLook) return outcome;
  constexpr int64_t kMs = 1000;
  parts_.on_cycle((parts_.clock.monotonic_us() - slice.start_us) / kMs);
  return outcome;
}

Eviction::Outcome Eviction::evict_until(const EvictionSettings& settings, uint64_t extra_bytes,
                                        Slice& slice) {
  Databases from = databases(slice.start_us, false);
  bool is_exact = false;
  // Limit on consecutive candidates that are not evicted, because they were deleted, were used
  // again or cannot be evicted.
  constexpr int kMissesMax = 1000;
  int misses = 0;
  const int keys_per_look = slice.limit_us < kUsualLimitUs ? 1 : kKeysPerLook;
  while (misses < kMissesMax) {
    const EvictionPool::Choice choice = pool_.choose(settings, *from);
    if (!choice.candidate && !choice.is_any_left) {
      if (std::exchange(is_exact, true)) return Outcome::kFailed;
      from = databases(slice.start_us, true);
      continue;
    }
    is_exact = false;
    const uint64_t freed = choice.candidate ? evict_key(*choice.candidate, settings) : 0;
    misses = freed > 0 ? 0 : misses + 1;
    slice.freed_bytes += freed;
    // Other threads also evict, so excess_bytes() may be 0 before this slice has freed its initial
    // excess. excess_bytes() may also stay above 0 afterwards, because a deletion can allocate
    // memory, for example for an invalidation message. Such memory must not cause further
    // evictions, so this slice stops once it has freed its initial excess.
    const bool is_paid = slice.freed_bytes >= slice.excess_bytes;
    if (is_paid || excess_bytes(extra_bytes) == 0) return Outcome::kDone;
    if (++slice.keys % keys_per_look != 0) continue;
    const int64_t spent_us = parts_.clock.monotonic_us() - slice.start_us;
    if (spent_us < slice.limit_us) continue;
    const bool overruns_far = extra_bytes != 0 && excess_bytes(extra_bytes) > kOverrunBytesMax;
    if (!overruns_far || spent_us / kPatience >= slice.limit_us) break;
  }
  const bool is_out_of_reach = misses == kMissesMax && settings.wait == StripeWait::kSkip;
  return is_out_of_reach ? Outcome::kFailed : Outcome::kGoesOn;
}

uint64_t Eviction::evict_key(const EvictionPool::Candidate& candidate,
                             const EvictionSettings& settings) {
  auto& keyspace = parts_.keyspace;
  const auto key = keyspace.ref(candidate.key);
  core::keyspace::EntryPtr gone;
  {
    const auto mask = core::keyspace::Keyspace::mask_of(key);
    const auto lock = keyspace.lock(mask, LockMode::kExclusive, settings.wait);
    if (lock.mask() == 0) return 0;
    // No key is evicted if, after the candidate was chosen, this server became exempt from
    // maxmemory or writes were held back.
    if (is_exempt() || is_held_back()) return 0;
    const auto* entry = keyspace.find_any(candidate.database, key);
    if (entry == nullptr || !pool_.is_still_due(*entry, candidate, settings)) return 0;
    gone = keyspace.erase(candidate.database, key);
    keyspace.notify_modified(candidate.database, key);
    parts_.on_evicted(candidate.database, key.name);
  }
  parts_.gauges.evicted_keys.fetch_add(1, std::memory_order_relaxed);
  // The memory is needed now, so only values that take long to free are left to another thread.
  constexpr uint64_t kFreedHereMax = uint64_t{4} << 20;
  const uint64_t freed_bytes = gone->memory_bytes();
  if (freed_bytes > kFreedHereMax) parts_.reclaimer.drop(std::move(gone));
  return freed_bytes;
}

void Eviction::record(Outcome outcome) {
  std::atomic<int64_t>& since_us = parts_.gauges.eviction_exceeded_since_us;
  const bool is_exceeded = outcome != Outcome::kDone;
  // Only the times at which memory begins or ceases to exceed the limit are recorded. At all other
  // calls the clock is not read.
  if ((since_us.load(std::memory_order_relaxed) != 0) == is_exceeded) return;
  const int64_t now_us = parts_.clock.monotonic_us();
  int64_t never_us = 0;
  if (is_exceeded) {
    since_us.compare_exchange_strong(never_us, now_us);
    return;
  }
  const int64_t began_us = since_us.exchange(0);
  if (began_us == 0) return;
  parts_.gauges.eviction_exceeded_us.fetch_add(static_cast<uint64_t>(now_us - began_us));
}

}  // namespace server
