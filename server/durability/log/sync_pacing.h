// SPDX-License-Identifier: MIT
//
// SyncPacing: with `appendfsync always`, decides whether an I/O thread with waiting clients syncs
// the log itself or leaves the sync to the log's thread. Also decides how many clients share one
// sync of the log's thread.
//
// After a sync that answered several clients, the log's thread delays the next sync until the same
// number of clients wait again. The delay is at most twice the duration of the last sync, and at
// most a millisecond. So clients that write in a loop share one sync, instead of forming ever
// smaller groups.
// Thread safety: any thread may call add(), are_enough() and is_quick(). Only the thread that syncs
// for all waiting clients may call record_sync(), begin_here() and end_here(). The log's thread
// calls the other functions.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace server {

class SyncPacing {
 public:
  // Adds `clients` to the number of waiting clients, and returns the sum.
  size_t add(size_t clients) { return waiting_.fetch_add(clients) + clients; }
  // Returns whether so many clients wait that the log's thread should be woken to begin a sync.
  bool are_enough() const { return waiting_ >= wakes_from_; }
  // Returns whether syncs are so fast that an I/O thread should sync the log itself for its waiting
  // clients. Such a sync delays the thread's other clients no more than a long command does.
  bool is_quick() const { return average_us_ <= kQuickUs; }
  void record_sync(int64_t took_us) { average_us_ += (took_us - average_us_) / kAveragedSyncs; }

  // Begins a sync for all waiting clients, and returns their number.
  size_t begin() {
    // Clients do not wake the log's thread during a sync, because the thread checks for clients
    // after the sync.
    wakes_from_ = SIZE_MAX;
    return waiting_.exchange(0);
  }
  // Ends the sync. `clients` is the number of clients whose replies the sync covered.
  void end(size_t clients, int64_t took_us) {
    wakes_from_ = std::max<size_t>(clients, 1);
    if (clients > 1) gather_us_ = std::min(2 * took_us, kGatherMaxUs);
  }
  // An I/O thread that syncs the log itself calls begin_here() before the sync and end_here() after
  // it. After end_here(), the first client that waits for a sync wakes the log's thread.
  void begin_here() { waiting_ = 0; }
  void end_here() { wakes_from_ = 1; }
  // Called when the append log is not open, so no client can wait for a sync. Sets the number of
  // waiting clients to 0.
  void forget() { waiting_ = 0; }
  // Returns how long the log's thread waits for more clients before a sync; 0 if it does not wait.
  std::chrono::microseconds gather_time() const { return std::chrono::microseconds(gather_us_); }
  void stop_gathering() { gather_us_ = 0; }

 private:
  // Limit on the time that a client waits for other clients to share its sync.
  static constexpr int64_t kGatherMaxUs = 1000;
  static constexpr int64_t kQuickUs = 1000;
  // Number of syncs over which the duration is averaged. After one sync of 100 ms, the average
  // stays above kQuickUs for about thirty syncs. During that time the log's thread does all syncs.
  static constexpr int64_t kAveragedSyncs = 16;
  // The initial value of the average duration. It exceeds kQuickUs, so at first the log's thread
  // does all syncs. I/O threads sync once the average has fallen to kQuickUs.
  static constexpr int64_t kSlowUs = 10'000;

  // Moving average of a sync's duration; written by the syncing thread.
  std::atomic<int64_t> average_us_{kSlowUs};
  std::atomic<size_t> waiting_{0};  // number of clients for which no sync has begun

  // The log's thread is woken when at least this number of clients wait.
  std::atomic<size_t> wakes_from_{1};
  // Time for which the log's thread waits for more clients; used by that thread only.
  int64_t gather_us_ = 0;
};

}  // namespace server
