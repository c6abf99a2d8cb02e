// SPDX-License-Identifier: MIT
#include "core/keyspace/reclaimer.h"

#include <system_error>
#include <utility>

#include "core/memory/thread_heap.h"

namespace core::keyspace {
namespace {

// Returns the size of a queued item. Returns 0 for tables, because computing their size would
// require a walk over all entries.
uint64_t bytes_of(const std::variant<EntryPtr, DetachedTables>& item) {
  const auto* const entry = std::get_if<EntryPtr>(&item);
  return entry != nullptr ? (*entry)->memory_bytes() : 0;
}

}  // namespace

Reclaimer::~Reclaimer() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Reclaimer::drop(EntryPtr entry) {
  if (entry != nullptr && entry->is_heavy()) enqueue(std::move(entry));
}

void Reclaimer::drop(DetachedTables tables) {
  if (!tables.empty()) enqueue(std::move(tables));
}

size_t Reclaimer::pending() const {
  const std::lock_guard guard(mutex_);
  return queue_.size() + (busy_ ? 1 : 0);
}

void Reclaimer::enqueue(Item item) {
  {
    const std::lock_guard guard(mutex_);
    // If the queue is full, the calling thread frees the item, which delays that thread.
    if (queue_.size() >= queue_max_ || !ensure_thread()) return;
    pending_bytes_.fetch_add(bytes_of(item), std::memory_order_relaxed);
    queue_.push_back(std::move(item));
  }
  wake_.notify_one();
}

bool Reclaimer::ensure_thread() {
  if (thread_.joinable()) return true;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    return false;  // the system allows no more threads, so the caller frees the item
  }
  return true;
}

void Reclaimer::run() {
  count_thread_heap();
  std::unique_lock guard(mutex_);
  for (;;) {
    wake_.wait(guard, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    uint64_t size_bytes = 0;
    {
      const Item item = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      guard.unlock();
      size_bytes = bytes_of(item);
    }
    pending_bytes_.fetch_sub(size_bytes, std::memory_order_relaxed);
    guard.lock();
    busy_ = false;
  }
}

}  // namespace core::keyspace
