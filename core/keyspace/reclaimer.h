// SPDX-License-Identifier: MIT
//
// Reclaimer: frees big values and whole tables on a thread of its own, so that DEL of a 6 GB filter
// or FLUSHALL costs its caller nothing.
//
// Invariants: the thread starts with the first item. The queue is bounded: the caller frees an item
// that does not fit, and each item if no thread can be started. Everything queued is freed before
// the destructor returns.
// Thread safety: drop() may be called from any thread, best after unlocking.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <variant>

#include "core/keyspace/keyspace.h"

namespace core::keyspace {

class Reclaimer {
 public:
  static constexpr size_t kQueueMax = 1024;

  // With `queue_max` 0 the caller frees everything.
  explicit Reclaimer(size_t queue_max = kQueueMax) : queue_max_(queue_max) {}
  ~Reclaimer();
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  // Light entries are freed at once; null is fine.
  void drop(EntryPtr entry);
  void drop(DetachedTables tables);
  // Items queued or being freed: INFO's lazyfree_pending_objects.
  size_t pending() const;
  // Bytes of the values among them. They count as free: whoever deleted them was told so.
  uint64_t pending_bytes() const { return pending_bytes_.load(std::memory_order_relaxed); }

 private:
  using Item = std::variant<EntryPtr, DetachedTables>;
  void enqueue(Item item);
  // Whether the thread runs. REQUIRES: mutex_.
  bool ensure_thread();
  void run();

  const size_t queue_max_;
  mutable std::mutex mutex_;  // guards queue_, busy_, stopping_ and the start of thread_
  std::condition_variable wake_;
  std::deque<Item> queue_;
  std::atomic<uint64_t> pending_bytes_{0};
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace core::keyspace
