// SPDX-License-Identifier: MIT
//
// SyncPacing: with `appendfsync always`, whether the thread whose clients wait syncs itself, and
// how many clients the log's thread lets share one sync.
//
// After a sync that answered several clients the next one waits for as many, at most twice the time
// that the sync took: clients that write in a loop then share one, instead of falling into ever
// smaller groups.
// Thread safety: add(), are_enough() and is_quick() from any thread; the rest from the one that
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
  // More clients wait. Returns how many do.
  size_t add(size_t clients) { return waiting_.fetch_add(clients) + clients; }
  // Whether so many wait that the log's thread should begin.
  bool are_enough() const { return waiting_ >= wakes_from_; }
  // Syncs are so quick that the thread whose clients wait does them itself: no worse for its other
  // clients than a long command.
  bool is_quick() const { return average_us_ <= kQuickUs; }
  void note_sync(int64_t took_us) { average_us_ += (took_us - average_us_) / kAveragedSyncs; }

  // A sync for all begins. Returns how many it is for.
  size_t begin() {
    wakes_from_ = SIZE_MAX;  // the thread looks by itself when this is done
    return waiting_.exchange(0);
  }
  // It has ended, for so many.
  void end(size_t clients, int64_t took_us) {
    wakes_from_ = std::max<size_t>(clients, 1);
    if (clients > 1) gather_us_ = std::min(2 * took_us, kGatherMaxUs);
  }
  // By an I/O thread: if syncs have become slow, the first waiting client wakes the log's thread.
  void begin_here() { waiting_ = 0; }
  void end_here() { wakes_from_ = 1; }
  // There is no log to wait for.
  void forget() { waiting_ = 0; }
  // How long the log's thread waits for more clients; 0 when for none.
  std::chrono::microseconds gather_time() const { return std::chrono::microseconds(gather_us_); }
  void stop_gathering() { gather_us_ = 0; }

 private:
  // The most that a client waits for others that may come.
  static constexpr int64_t kGatherMaxUs = 1000;
  static constexpr int64_t kQuickUs = 1000;
  // How many make the average: one of 100 ms keeps the next thirty or so off the I/O threads.
  static constexpr int64_t kAveragedSyncs = 16;
  // A disk is slow until it has shown otherwise.
  static constexpr int64_t kSlowUs = 10'000;

  std::atomic<int64_t> average_us_{kSlowUs};  // moving; written by the syncing thread
  std::atomic<size_t> waiting_{0};            // clients that no sync has begun for
  std::atomic<size_t> wakes_from_{1};         // how many of them wake the log's thread
  int64_t gather_us_ = 0;                     // of the log's thread
};

}  // namespace server
