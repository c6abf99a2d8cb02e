// SPDX-License-Identifier: MIT
//
// EvictionPool: chooses the key to evict when memory is full. Each choice samples a few random keys
// and remembers the best candidates of all samples. So even with small samples, the evicted keys
// are nearly those that exact LRU or LFU would evict.
//
// Invariants: candidates_ is sorted by score, the best one last. A candidate has only the name of
// its key. The key may have been deleted or used since it was sampled, so the caller finds it by
// name and calls is_still_due().
// Thread safety: all members may be called from any thread. choose() locks one stripe at a time.
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

#include "core/keyspace/eviction_policy.h"
#include "core/keyspace/key_use.h"
#include "core/keyspace/keyspace.h"
#include "core/split_mix.h"

namespace core::keyspace {

struct EvictionSettings {
  EvictionPolicy policy = EvictionPolicy::kNoEviction;
  size_t sample_size = 5;  // number of keys sampled per database
  uint32_t now_s = 0;      // current time on the clock of KeyUse
  StripeWait wait = StripeWait::kWait;
  UseRules rules{};
};

class EvictionPool {
 public:
  static constexpr size_t kCandidatesMax = 16;

  struct Candidate {
    uint64_t score = 0;  // the highest score is evicted first
    unsigned database = 0;
    std::string key;
  };
  struct Choice {
    std::optional<Candidate> candidate;
    // Valid only if there is no candidate. True if the databases contain keys that may be evicted,
    // but the search has found none of them.
    bool is_any_left = false;
  };

  EvictionPool(Keyspace& keyspace, uint64_t seed) : keyspace_(keyspace), random_(seed) {}

  // Chooses a key to evict from one of `databases`.
  Choice choose(const EvictionSettings& settings, std::span<const unsigned> databases);
  // True if the entry that now has the candidate's name still has at least the candidate's score.
  static bool is_still_due(const Entry& entry, const Candidate& candidate,
                           const EvictionSettings& settings);

 private:
  // The entries sampled for one choice.
  struct Sample {
    SplitMix64 chance;
    // Entries with this score or less are ignored, because enough entries with a higher score are
    // known.
    std::optional<uint64_t> score_floor{};
    size_t seen_count = 0;
    std::vector<Candidate> found{};
    bool is_any_left = false;
  };

  static uint64_t score_of(const Entry& entry, const EvictionSettings& settings);
  void sample(unsigned database, const EvictionSettings& settings, size_t count, Sample& out) const;
  void sample_stripe(unsigned stripe, unsigned database, const EvictionSettings& settings,
                     size_t count, Sample& out) const;
  // Adds sampled entries of one database. REQUIRES: their stripe is locked.
  static void add_found(std::span<const Entry* const> entries, unsigned database,
                        const EvictionSettings& settings, Sample& out);
  void merge(std::vector<Candidate> found);

  Keyspace& keyspace_;
  std::mutex mutex_;  // guards all members but keyspace_; its holder takes no other lock
  std::mt19937_64 random_;
  // Random policies evict from the databases in turn. The next database is this number modulo the
  // number of databases.
  size_t next_database_ = 0;
  EvictionPolicy scored_by_ = EvictionPolicy::kNoEviction;
  std::vector<Candidate> candidates_;
};

}  // namespace core::keyspace
