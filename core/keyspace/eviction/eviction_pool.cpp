// SPDX-License-Identifier: MIT
#include "core/keyspace/eviction/eviction_pool.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace core::keyspace {
namespace {

// Buckets looked at under one lock, and for one sample in all: keys that expire may be rare.
constexpr size_t kStepsPerLock = 64;
constexpr size_t kStepsMax = 4096;

}  // namespace

uint64_t EvictionPool::draw() {
  const std::scoped_lock lock(mutex_);
  return random_();
}

uint64_t EvictionPool::score_of(const Entry& entry, const EvictionTerms& terms) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  if (terms.policy == EvictionPolicy::kVolatileTtl) {
    return kMost - static_cast<uint64_t>(entry.expires_at_ms());
  }
  if (is_lfu(terms.policy)) {
    return uint64_t{255} - KeyUse(entry).count(terms.now_s, terms.rules);
  }
  return is_lru(terms.policy) ? KeyUse(entry).idle_s(terms.now_s) : 0;
}

bool EvictionPool::is_still_due(const Entry& entry, const Candidate& candidate,
                                const EvictionTerms& terms) {
  if (is_volatile(terms.policy) && !entry.has_expiry()) return false;
  return score_of(entry, terms) >= candidate.score;
}

EvictionPool::Choice EvictionPool::choose(const EvictionTerms& terms,
                                          std::span<const unsigned> databases) {
  Sample sampled;
  if (is_random(terms.policy)) {
    size_t turn = 0;
    {
      const std::scoped_lock lock(mutex_);
      turn = next_database_++;
    }
    for (size_t i = 0; i < databases.size() && sampled.found.empty(); ++i) {
      sample(databases[(turn + i) % databases.size()], terms, 1, sampled);
    }
    if (sampled.found.empty()) return {std::nullopt, sampled.is_any_left};
    return {std::move(sampled.found.front()), true};
  }
  for (const unsigned database : databases) sample(database, terms, terms.sample_size, sampled);
  const std::scoped_lock lock(mutex_);
  if (scored_by_ != terms.policy) candidates_.clear();
  scored_by_ = terms.policy;
  merge(std::move(sampled.found));
  if (candidates_.empty()) return {std::nullopt, sampled.is_any_left};
  Candidate best = std::move(candidates_.back());
  candidates_.pop_back();
  return {std::move(best), true};
}

// Keys are spread over the stripes by their hashes, so a stripe drawn at random will do; one that
// holds nothing leaves its turn to the next.
void EvictionPool::sample(unsigned database, const EvictionTerms& terms, size_t count,
                          Sample& out) {
  const auto first = static_cast<unsigned>(draw() % kStripeCount);
  const size_t wanted = out.found.size() + count;
  for (unsigned i = 0; i < kStripeCount && out.found.size() < wanted; ++i) {
    const unsigned stripe = (first + i) % kStripeCount;
    const Database& share = keyspace_.database_of_stripe(stripe, database);
    const auto& counter = is_volatile(terms.policy) ? share.expires : share.size;
    if (counter.load(std::memory_order_relaxed) == 0) continue;
    out.is_any_left = true;
    sample_stripe(stripe, database, terms, wanted - out.found.size(), out);
    // A small share is a sample of its own size.
    if (counter.load(std::memory_order_relaxed) >= count) return;
  }
}

void EvictionPool::sample_stripe(unsigned stripe, unsigned database, const EvictionTerms& terms,
                                 size_t count, Sample& out) {
  const size_t wanted = out.found.size() + count;
  const auto is_done = [&] { return out.found.size() >= wanted; };
  uint64_t cursor = draw();
  std::vector<const Entry*> seen;  // in one position of the table
  bool is_second_round = false;
  for (size_t steps = 0; steps < kStepsMax && !is_done();) {
    const StripeMask mask = StripeMask{1} << stripe;
    const auto lock = keyspace_.lock(mask, LockMode::kShared, terms.wait);
    if (lock.mask() == 0) return;
    const Table* table = keyspace_.database_of_stripe(stripe, database).table.get();
    if (table == nullptr) return;
    for (size_t end = steps + kStepsPerLock; steps < end && !is_done(); ++steps) {
      cursor = table->scan(cursor, [&](const Entry& entry) {
        if (!is_volatile(terms.policy) || entry.has_expiry()) seen.push_back(&entry);
      });
      // A bucket lists its entries by age, so chance decides which of them are taken.
      for (; !seen.empty() && !is_done(); seen.pop_back()) {
        std::swap(seen[draw() % seen.size()], seen.back());
        const Entry& entry = *seen.back();
        out.found.push_back({score_of(entry, terms), database, std::string(entry.key())});
      }
      seen.clear();
      if (cursor == 0 && std::exchange(is_second_round, true)) return;
    }
  }
}

void EvictionPool::merge(std::vector<Candidate> found) {
  for (Candidate& one : found) {
    const bool is_full = candidates_.size() >= kCandidatesMax;
    if (is_full && one.score <= candidates_.front().score) continue;
    const auto is_known = [&](const Candidate& other) {
      return other.database == one.database && other.key == one.key;
    };
    if (std::any_of(candidates_.begin(), candidates_.end(), is_known)) continue;
    if (is_full) candidates_.erase(candidates_.begin());
    const auto place =
        std::upper_bound(candidates_.begin(), candidates_.end(), one,
                         [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
    candidates_.insert(place, std::move(one));
  }
}

}  // namespace core::keyspace
