// SPDX-License-Identifier: MIT
//
// Reclaimer: frees big values and whole tables on its own thread, so that DEL of a 6 GB filter or
// FLUSHALL does not delay its caller.
//
// Invariants: the thread is started when the first item is queued. The queue is bounded. The caller
// itself frees an item if the queue is full, and every item if no thread can be started. All queued
// items are freed before the destructor returns.
// Thread safety: drop() may be called from any thread, preferably after the thread has released its
// stripe locks.
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

  // If `queue_max` is 0, the caller's thread frees every value.
  explicit Reclaimer(size_t queue_max = kQueueMax) : queue_max_(queue_max) {}
  ~Reclaimer();
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  // Frees an entry with a small value immediately, and queues an entry with a big value
  // (Entry::is_heavy()). `entry` may be null.
  void drop(EntryPtr entry);
  void drop(DetachedTables tables);
  // Items that are queued or being freed: INFO's lazyfree_pending_objects.
  size_t pending() const;
  // Bytes of the values that are queued or being freed. Tables of a flush do not count, because
  // their size is unknown. The memory monitor counts these bytes as free, because the keys of
  // the values are already deleted.
  uint64_t pending_bytes() const { return pending_bytes_.load(std::memory_order_relaxed); }

 private:
  using Item = std::variant<EntryPtr, DetachedTables>;
  void enqueue(Item item);
  // Starts the thread if needed. Returns true if the thread runs. REQUIRES: mutex_ is held.
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
