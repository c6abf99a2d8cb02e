// SPDX-License-Identifier: MIT
//
// Published: a value that one thread writes and any thread reads.
//
// Invariants: all accesses are relaxed, so they do not order accesses to other memory.
// Thread safety: only one thread at a time may call the members that are not const.
#pragma once

#include <atomic>

namespace core {

template <class Value>
class Published {
 public:
  explicit Published(Value value) : value_(value) {}

  operator Value() const { return get(); }
  Value get() const { return value_.load(std::memory_order_relaxed); }
  Value operator=(Value value) {
    value_.store(value, std::memory_order_relaxed);
    return value;
  }
  // Cheaper than an atomic addition, because no other thread writes.
  Value operator+=(Value more) { return *this = static_cast<Value>(get() + more); }

 private:
  std::atomic<Value> value_;
};

}  // namespace core
