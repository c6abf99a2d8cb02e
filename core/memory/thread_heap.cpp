// SPDX-License-Identifier: MIT
#include "core/memory/thread_heap.h"

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <vector>

// mallctl() is null if the linked allocator is not jemalloc.
extern "C" [[gnu::weak]] int mallctl(const char* name, void* old_value, size_t* old_size,
                                     void* new_value, size_t new_size);

namespace core {
namespace {

// A counter that the allocator keeps for the calling thread; null if the allocator has no such
// counter.
const uint64_t* thread_counter(const char* name) {
  if (mallctl == nullptr) return nullptr;
  uint64_t* counter = nullptr;
  size_t size = sizeof counter;
  return mallctl(name, &counter, &size, nullptr, 0) == 0 ? counter : nullptr;
}

// The owning thread writes its counters with plain stores of one machine word, so an atomic load
// suffices here. The load acquires, so that a later call does not read before an earlier one.
uint64_t value_of(const uint64_t* counter) {
  return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

// The counters of a thread, which lie in its thread-local storage.
struct Counters {
  const uint64_t* allocated = nullptr;
  const uint64_t* freed = nullptr;

  bool operator==(const Counters&) const = default;
  bool are_known() const { return allocated != nullptr && freed != nullptr; }
  uint64_t in_use() const { return value_of(allocated) - value_of(freed); }
};

class HeapCount {
 public:
  static HeapCount& of_process() {
    // The HeapCount is never destroyed, because threads may end after static objects are destroyed.
    static HeapCount& count = *new HeapCount;
    return count;
  }

  void add(const Counters& thread) {
    const std::unique_lock lock(mutex_);
    threads_.push_back(thread);
    thread_count_ = threads_.size();
  }
  void end(const Counters& thread) {
    const std::unique_lock lock(mutex_);
    std::erase(threads_, thread);
    thread_count_ = threads_.size();
    ended_bytes_ += thread.in_use();
  }
  size_t thread_count() const { return thread_count_.load(std::memory_order_relaxed); }

  uint64_t bytes() const {
    const std::shared_lock lock(mutex_);
    uint64_t freed = 0;
    // The freed bytes are read before the allocated bytes, and value_of() keeps this order. So if
    // the bytes of a block count as freed, they also count as allocated.
    for (const Counters& thread : threads_) freed += value_of(thread.freed);
    uint64_t allocated = ended_bytes_;
    for (const Counters& thread : threads_) allocated += value_of(thread.allocated);
    return allocated - freed;
  }

 private:
  // Guards threads_ and ended_bytes_. A reader of the counters holds the mutex shared. A thread
  // that ends needs the mutex exclusively, so its counters stay valid until the reader is done.
  mutable std::shared_mutex mutex_;
  std::vector<Counters> threads_;
  uint64_t ended_bytes_ = 0;
  std::atomic<size_t> thread_count_{0};
};

// Registers the calling thread until it ends.
struct CountedThread {
  CountedThread() {
    if (counters.are_known()) HeapCount::of_process().add(counters);
  }
  ~CountedThread() {
    if (counters.are_known()) HeapCount::of_process().end(counters);
  }
  CountedThread(const CountedThread&) = delete;
  CountedThread& operator=(const CountedThread&) = delete;

  const Counters counters{thread_counter("thread.allocatedp"),
                          thread_counter("thread.deallocatedp")};
};

const Counters& this_thread() {
  thread_local const CountedThread thread;
  return thread.counters;
}

}  // namespace

void count_thread_heap() {
  (void)this_thread();
}

uint64_t counted_heap_bytes() {
  return HeapCount::of_process().bytes();
}

size_t counted_thread_count() {
  return HeapCount::of_process().thread_count();
}

std::optional<uint64_t> thread_heap_bytes() {
  const Counters& thread = this_thread();
  if (!thread.are_known()) return std::nullopt;
  return thread.in_use();
}

}  // namespace core
