// SPDX-License-Identifier: MIT
//
// SyncPacing: with `appendfsync always`, decides whether the thread whose clients wait syncs
// itself, and how many clients share one sync of the log's thread.
//
// After a sync that answered several clients, the next one waits for as many, for at most twice the
// duration of the sync. So clients that write in a loop share one sync, rather than forming ever
// smaller groups.
// Thread safety: add(), are_enough() and is_quick() from any thread; the rest from the thread that
// writes and syncs for all.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace server {

class SyncPacing {
 public:
  // Adds waiting clients, and returns their total number.
  size_t add(size_t clients) { return waiting_.fetch_add(clients) + clients; }
  // Returns whether so many clients wait that the log's thread may begin a sync.
  bool are_enough() const { return waiting_ >= wakes_from_; }
  // Returns whether syncs are so fast that the thread whose clients wait does them itself. That
  // delays its other clients no more than a long command.
  bool is_quick() const { return average_us_ <= kQuickUs; }
  void record_sync(int64_t took_us) { average_us_ += (took_us - average_us_) / kAveragedSyncs; }

  // Begins a sync for all waiting clients, and returns their number.
  size_t begin() {
    // Disables the wake-up by clients, because the log's thread checks by itself when the sync is
    // done.
    wakes_from_ = SIZE_MAX;
    return waiting_.exchange(0);
  }
  // Ends the sync. `clients` is the number of replies it covered.
  void end(size_t clients, int64_t took_us) {
    wakes_from_ = std::max<size_t>(clients, 1);
    if (clients > 1) gather_us_ = std::min(2 * took_us, kGatherMaxUs);
  }
  // Begins a sync on an I/O thread. If syncs have become slow, the first waiting client wakes the
  // log's thread.
  void begin_here() { waiting_ = 0; }
  void end_here() { wakes_from_ = 1; }
  // Called when there is no log to wait for. Forgets the waiting clients.
  void forget() { waiting_ = 0; }
  // Returns how long the log's thread waits for more clients; 0 if it does not.
  std::chrono::microseconds gather_time() const { return std::chrono::microseconds(gather_us_); }
  void stop_gathering() { gather_us_ = 0; }

 private:
  // Limit on the time that a client waits for other clients to share its sync.
  static constexpr int64_t kGatherMaxUs = 1000;
  static constexpr int64_t kQuickUs = 1000;
  // Number of syncs averaged: after one of 100 ms, I/O threads do not sync for about thirty syncs.
  static constexpr int64_t kAveragedSyncs = 16;
  // The initial average, which makes a disk count as slow until it is measured.
  static constexpr int64_t kSlowUs = 10'000;

  // Moving average of a sync's duration; written by the syncing thread.
  std::atomic<int64_t> average_us_{kSlowUs};
  std::atomic<size_t> waiting_{0};  // number of clients for which no sync has begun
  // Number of waiting clients at which the log's thread is woken.
  std::atomic<size_t> wakes_from_{1};
  // Time for which the log's thread waits for more clients; used by that thread only.
  int64_t gather_us_ = 0;
};

}  // namespace server
