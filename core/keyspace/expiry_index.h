// SPDX-License-Identifier: MIT
//
// ExpiryIndex: the keys of one table that have an expiry, ordered by deadline and stored as hashes.
//
// A record is neither moved nor removed when its key is deleted or its expiry becomes later.
// Otherwise each command would have to search for the record. The caller of take_due() looks the
// key up, and adds a record again if the key still has an expiry. purge() removes records that no
// key needs.
//
// Invariants, kept by the keyspace: each key with an expiry has a record with its hash. The
// record's deadline is not later than the key's expiry. If keys come and go one by one, there are
// at most kRecordsPerKeyMax records per key with an expiry, plus kSparesMax. If many keys were
// deleted at once, their records are removed gradually.
// Thread safety: guarded by the stripe lock of its table, except next_ms(), which any thread may
// call.
// Source: a heap with four children per node (LaMarca, Ladner 1996, "The influence of caches on the
// performance of heaps").
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace core::keyspace {

class ExpiryIndex {
 public:
  // A time that no clock reaches.
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  // The bound on records per key is twice the number at which purge() begins to remove records. One
  // call checks only kPurgeSteps records, so a pass over all records takes many calls. Meanwhile
  // records are added, or keys lose their expiry.
  static constexpr size_t kRecordsPerKeyMax = 4;
  static constexpr size_t kSparesMax = 512;
  static constexpr int kPurgeSteps = 8;

  // The earliest deadline; kNever if there are no records.
  int64_t next_ms() const { return next_ms_.load(std::memory_order_relaxed); }
  void add(int64_t deadline_ms, uint64_t hash);
  // If the earliest deadline is before `now_ms`, removes the record with this deadline and returns
  // the record's hash. Otherwise returns nullopt.
  std::optional<uint64_t> take_due(int64_t now_ms);
  void clear();
  void swap(ExpiryIndex& other);

  size_t size() const { return records_.size(); }
  size_t memory_bytes() const { return records_.capacity() * sizeof(Record); }

  // Removes some unneeded records if there are many more records than keys. Must be called after
  // add(), and after a key has lost its expiry. `key_count` is the number of keys with an expiry.
  // `latest_of(hash)` returns the latest expiry of the keys with this hash, or nullopt. purge()
  // usually checks only kPurgeSteps records, and calls latest_of() for each. Several records may
  // have the same hash. If a whole pass over the records finds none to remove, purge() keeps only
  // one record of each hash. It then calls latest_of() for each of these records.
  template <class LatestOf>
  void purge(size_t key_count, LatestOf&& latest_of) {
    if (size() <= kRecordsPerKeyMax / 2 * key_count + kSparesMax) return;
    // Each call checks several records, so that the number of unneeded records falls.
    for (int step = 0; step < kPurgeSteps && size() > 0; ++step) {
      purge_at_ %= size();
      if (is_needed(records_[purge_at_], latest_of)) {
        ++purge_at_;
        ++needed_in_a_row_;
      } else {
        remove(purge_at_);
        needed_in_a_row_ = 0;
      }
    }
    // Since the last removal, is_needed() has returned true as often as there are records. Yet
    // there are too many records, so some keys have several: for example, PERSIST and EXPIRE were
    // alternated. Only the record with the earliest deadline is kept for each hash.
    if (needed_in_a_row_ >= size()) keep_one_of_each(latest_of);
  }

 private:
  struct Record {
    int64_t deadline_ms;
    uint64_t hash;
  };
  static constexpr size_t kChildren = 4;

  template <class LatestOf>
  static bool is_needed(const Record& record, LatestOf&& latest_of) {
    const std::optional<int64_t> latest_ms = latest_of(record.hash);
    return latest_ms && record.deadline_ms <= *latest_ms;
  }
  template <class LatestOf>
  void keep_one_of_each(LatestOf&& latest_of) {
    sort_and_unite();
    std::erase_if(records_, [&](const Record& record) { return !is_needed(record, latest_of); });
    build();
    needed_in_a_row_ = 0;
  }

  // Removes a record, and frees memory once three quarters of it are unused.
  void remove(size_t at);
  // Capacity for the present records and some more. An eighth more, because doubling would leave a
  // quarter of the memory unused on average.
  size_t grown_capacity() const { return size() + size() / 8 + 16; }
  void sift_up(size_t at);
  void sift_down(size_t at);
  // Sorts the records by hash. If several have the same hash, keeps only the one with the
  // earliest deadline.
  void sort_and_unite();
  // Restores the heap order of all records.
  void build();
  void publish_next();

  std::vector<Record> records_;
  size_t purge_at_ = 0;
  size_t needed_in_a_row_ = 0;  // number of consecutive records that purge() has kept
  std::atomic<int64_t> next_ms_{kNever};
};

// Statistics of expiry, for INFO only.
//
// Thread safety: all members may be called from any thread.
// Source: the fields of INFO in Redis 7.0.
struct ExpiryStatistics {
  // Number of keys deleted because they had expired.
  std::atomic<uint64_t> expired{0};
  // Number of expired keys that active expiry deleted.
  std::atomic<uint64_t> expired_actively{0};
  // Number of active expiry cycles that ran out of time.
  std::atomic<uint64_t> ticks_cut_by_time{0};
  // Moving average of the share (0 to 1) of keys that active expiry deletes in a period. The share
  // relates to the keys that have an expiry when the period starts.
  std::atomic<double> stale_ratio{0};

  // Implements CONFIG RESETSTAT.
  void reset() {
    expired.store(0);
    expired_actively.store(0);
    ticks_cut_by_time.store(0);
    stale_ratio.store(0);
  }
};

}  // namespace core::keyspace
