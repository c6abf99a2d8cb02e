// SPDX-License-Identifier: MIT
#include "core/keyspace/eviction_pool.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <limits>
#include <utility>

#include "core/prefetch.h"

namespace core::keyspace {
namespace {

// Maximum number of buckets scanned while a stripe lock is held.
constexpr size_t kStepsPerLock = 64;
// Maximum number of buckets scanned in one stripe for a sample. If only keys with an expiry may be
// evicted, the stripe may contain too few of them to complete the sample.
constexpr size_t kStepsMax = 4096;

// A list that holds a sample of usual size without an allocation.
using Entries = boost::container::small_vector<const Entry*, 16>;

}  // namespace

uint64_t EvictionPool::score_of(const Entry& entry, const EvictionSettings& settings) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  if (settings.policy == EvictionPolicy::kVolatileTtl) {
    return kMost - static_cast<uint64_t>(entry.expires_at_ms());
  }
  if (is_lfu(settings.policy)) {
    return uint64_t{255} - KeyUse(entry).count(settings.now_s, settings.rules);
  }
  return is_lru(settings.policy) ? KeyUse(entry).idle_s(settings.now_s) : 0;
}

bool EvictionPool::is_still_due(const Entry& entry, const Candidate& candidate,
                                const EvictionSettings& settings) {
  if (is_volatile(settings.policy) && !entry.has_expiry()) return false;
  return score_of(entry, settings) >= candidate.score;
}

EvictionPool::Choice EvictionPool::choose(const EvictionSettings& settings,
                                          std::span<const unsigned> databases) {
  size_t turn = 0;
  std::optional<uint64_t> score_floor;
  uint64_t seed = 0;
  {
    const std::scoped_lock lock(mutex_);
    seed = random_();
    if (is_random(settings.policy)) turn = next_database_++;
    const bool is_full = scored_by_ == settings.policy && candidates_.size() >= kCandidatesMax;
    if (is_full) score_floor = candidates_.front().score;
  }
  Sample sampled{.chance = SplitMix64(seed), .score_floor = score_floor};
  if (is_random(settings.policy)) {
    sampled.score_floor.reset();
    for (size_t i = 0; i < databases.size() && sampled.found.empty(); ++i) {
      sample(databases[(turn + i) % databases.size()], settings, 1, sampled);
    }
    if (sampled.found.empty()) return {std::nullopt, sampled.is_any_left};
    return {std::move(sampled.found.front()), true};
  }
  for (const unsigned database : databases)
    sample(database, settings, settings.sample_size, sampled);
  const std::scoped_lock lock(mutex_);
  if (scored_by_ != settings.policy) candidates_.clear();
  scored_by_ = settings.policy;
  merge(std::move(sampled.found));
  if (candidates_.empty()) return {std::nullopt, sampled.is_any_left};
  Candidate best = std::move(candidates_.back());
  candidates_.pop_back();
  return {std::move(best), true};
}

// Samples a random stripe, which is representative because hashes spread the keys over the stripes.
// An empty stripe is skipped.
void EvictionPool::sample(unsigned database, const EvictionSettings& settings, size_t count,
                          Sample& out) const {
  const auto first = static_cast<unsigned>(out.chance.draw() % kStripeCount);
  const size_t wanted = out.seen_count + count;
  for (unsigned i = 0; i < kStripeCount && out.seen_count < wanted; ++i) {
    const unsigned stripe = (first + i) % kStripeCount;
    const Database& share = keyspace_.database_of_stripe(stripe, database);
    const auto& counter = is_volatile(settings.policy) ? share.expires : share.size;
    if (counter.load(std::memory_order_relaxed) == 0) continue;
    out.is_any_left = true;
    sample_stripe(stripe, database, settings, wanted - out.seen_count, out);
    // If the stripe has fewer keys than the sample needs, the next stripe supplies the missing
    // keys.
    if (counter.load(std::memory_order_relaxed) >= count) return;
  }
}

void EvictionPool::sample_stripe(unsigned stripe, unsigned database,
                                 const EvictionSettings& settings, size_t count,
                                 Sample& out) const {
  uint64_t cursor = out.chance.draw();
  Entries chosen;
  Entries seen;  // entries that may be evicted, from one step of the table scan
  bool is_second_round = false;
  for (size_t steps = 0; steps < kStepsMax && count > 0;) {
    const StripeMask mask = StripeMask{1} << stripe;
    const auto lock = keyspace_.lock(mask, LockMode::kShared, settings.wait);
    if (lock.mask() == 0) return;
    const Table* table = keyspace_.database_of_stripe(stripe, database).table.get();
    if (table == nullptr) return;
    bool has_ended = false;
    for (size_t end = steps + kStepsPerLock; steps < end && count > 0 && !has_ended; ++steps) {
      cursor = table->scan(cursor, [&](const Entry& entry) {
        if (!is_volatile(settings.policy) || entry.has_expiry()) seen.push_back(&entry);
      });
      // Entries are drawn at random. A bucket lists its entries by age, so taking the first ones
      // would give a biased sample.
      for (; !seen.empty() && count > 0; seen.pop_back(), --count) {
        std::swap(seen[out.chance.draw() % seen.size()], seen.back());
        prefetch(seen.back());
        chosen.push_back(seen.back());
      }
      seen.clear();
      has_ended = cursor == 0 && std::exchange(is_second_round, true);
    }
    add_found(chosen, database, settings, out);
    chosen.clear();
    if (has_ended) return;
  }
}

void EvictionPool::add_found(std::span<const Entry* const> entries, unsigned database,
                             const EvictionSettings& settings, Sample& out) {
  out.seen_count += entries.size();
  for (const Entry* const entry : entries) {
    const uint64_t score = score_of(*entry, settings);
    if (out.score_floor && score <= *out.score_floor) continue;
    out.found.push_back({score, database, std::string(entry->key())});
  }
}

void EvictionPool::merge(std::vector<Candidate> found) {
  for (Candidate& one : found) {
    const bool is_full = candidates_.size() >= kCandidatesMax;
    if (is_full && one.score <= candidates_.front().score) continue;
    const bool is_known = std::ranges::any_of(candidates_, [&](const Candidate& other) {
      return other.database == one.database && other.key == one.key;
    });
    if (is_known) continue;
    if (is_full) candidates_.erase(candidates_.begin());
    const auto place = std::ranges::upper_bound(candidates_, one.score, {}, &Candidate::score);
    candidates_.insert(place, std::move(one));
  }
}

}  // namespace core::keyspace
