// SPDX-License-Identifier: MIT
//
// EvictionPool: chooses the key that a full memory should lose next. It looks at a few keys at
// random, each time anew, and remembers the best ones seen: so a small sample comes close to the
// true order.
//
// Invariants: candidates_ is sorted by score, the best one last. A candidate is a name: its key
// may be gone, or used again, when its turn comes (is_still_due()).
// Thread safety: all members may be called from any thread. choose() takes one stripe at a time.
// Source: Redis' evict.c, "approximated LRU".
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/keyspace/eviction/key_use.h"
#include "core/keyspace/keyspace.h"

namespace core::keyspace {

// `maxmemory-policy`, in the order of its words.
enum class EvictionPolicy : uint8_t {
  kVolatileLru,
  kVolatileLfu,
  kVolatileRandom,
  kVolatileTtl,
  kAllKeysLru,
  kAllKeysLfu,
  kAllKeysRandom,
  kNoEviction,
};
// Whether only keys that expire may go.
constexpr bool is_volatile(EvictionPolicy policy) {
  return policy <= EvictionPolicy::kVolatileTtl;
}
constexpr bool is_lru(EvictionPolicy policy) {
  return policy == EvictionPolicy::kVolatileLru || policy == EvictionPolicy::kAllKeysLru;
}
constexpr bool is_lfu(EvictionPolicy policy) {
  return policy == EvictionPolicy::kVolatileLfu || policy == EvictionPolicy::kAllKeysLfu;
}
constexpr bool is_random(EvictionPolicy policy) {
  return policy == EvictionPolicy::kVolatileRandom || policy == EvictionPolicy::kAllKeysRandom;
}

struct EvictionTerms {
  EvictionPolicy policy = EvictionPolicy::kNoEviction;
  size_t sample_size = 5;  // of each database
  uint32_t now_s = 0;      // on the clock of the entries' uses
  StripeWait wait = StripeWait::kWait;
  UseRules rules{};
};

class EvictionPool {
 public:
  static constexpr size_t kCandidatesMax = 16;

  struct Candidate {
    uint64_t score = 0;  // how much it should go
    unsigned database = 0;
    std::string key;
  };
  struct Choice {
    std::optional<Candidate> candidate;
    // Without a candidate: whether some key may go all the same, which was not found yet.
    bool is_any_left = false;
  };

  EvictionPool(Keyspace& keyspace, uint64_t seed) : keyspace_(keyspace), random_(seed) {}

  // `databases` are those to look at.
  Choice choose(const EvictionTerms& terms, std::span<const unsigned> databases);
  // Whether the entry that now has the candidate's name is to go as much as it was.
  static bool is_still_due(const Entry& entry, const Candidate& candidate,
                           const EvictionTerms& terms);

 private:
  // Steele, Lea, Flood 2014, "Fast Splittable Pseudorandom Number Generators".
  class Chance {
   public:
    explicit Chance(uint64_t seed) : state_(seed) {}
    uint64_t draw();

   private:
    uint64_t state_;
  };
  // The entries that one choice looks at.
  struct Sample {
    Chance chance;
    // Entries with this score or less are of no interest, as there are enough better ones.
    std::optional<uint64_t> score_floor{};
    size_t seen_count = 0;
    std::vector<Candidate> found{};
    bool is_any_left = false;
  };

  static uint64_t score_of(const Entry& entry, const EvictionTerms& terms);
  void sample(unsigned database, const EvictionTerms& terms, size_t count, Sample& out) const;
  void sample_stripe(unsigned stripe, unsigned database, const EvictionTerms& terms, size_t count,
                     Sample& out) const;
  // Adds the entries of one database, whose stripe is locked.
  static void add_found(std::span<const Entry* const> entries, unsigned database,
                        const EvictionTerms& terms, Sample& out);
  void merge(std::vector<Candidate> found);

  Keyspace& keyspace_;
  std::mutex mutex_;  // guards all below; held over no other lock
  std::mt19937_64 random_;
  size_t next_database_ = 0;  // of a policy that draws at random
  EvictionPolicy scored_by_ = EvictionPolicy::kNoEviction;
  std::vector<Candidate> candidates_;
};

}  // namespace core::keyspace
