// SPDX-License-Identifier: MIT
//
// Ring: the last values of a series, in memory that is allocated once.
//
// Invariants: holds at most `capacity` values.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace server::admin {

template <class T>
class Ring {
 public:
  explicit Ring(size_t capacity) : capacity_(capacity) { values_.reserve(capacity); }

  void push(T value) {
    if (values_.size() < capacity_) return values_.push_back(std::move(value));
    values_[oldest_] = std::move(value);
    oldest_ = (oldest_ + 1) % capacity_;
  }
  size_t size() const { return values_.size(); }
  // Returns the value at `index`; the oldest value has index 0. REQUIRES: index < size().
  const T& operator[](size_t index) const { return values_[(oldest_ + index) % values_.size()]; }
  size_t size_bytes() const { return values_.capacity() * sizeof(T); }

 private:
  const size_t capacity_;
  size_t oldest_ = 0;
  std::vector<T> values_;
};

}  // namespace server::admin
