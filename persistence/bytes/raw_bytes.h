// SPDX-License-Identifier: MIT
//
// RawBytes: bytes that grow at the end. New bytes may be left uninitialized for a reader to fill,
// whereas a std::string clears them first.
//
// Invariants: size() <= capacity(); clear() and shrink() keep the memory. Growth invalidates
// pointers into the bytes.
// Thread safety: one thread at a time may use an object.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace persistence {

class RawBytes {
 public:
  RawBytes() = default;
  RawBytes(RawBytes&& other) noexcept
      : memory_(std::move(other.memory_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  RawBytes& operator=(RawBytes&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }

  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  std::string_view view() const { return {memory_.get(), size_}; }

  // Appends the bytes, which must not be part of this object.
  void append(std::string_view bytes) { std::ranges::copy(bytes, grow(bytes.size()).begin()); }
  // Appends `count` bytes and returns them uninitialized. The caller fills them.
  std::span<char> grow(size_t count) {
    reserve(size_ + count);
    size_ += count;
    return {memory_.get() + size_ - count, count};
  }
  void reserve(size_t size) {
    if (size <= capacity_) return;
    const size_t capacity = std::max(size, 2 * capacity_);
    auto memory = std::make_unique_for_overwrite<char[]>(capacity);
    std::copy_n(memory_.get(), size_, memory.get());
    memory_ = std::move(memory);
    capacity_ = capacity;
  }
  void shrink(size_t size) {
    assert(size <= size_);
    size_ = size;
  }
  void clear() { shrink(0); }

 private:
  std::unique_ptr<char[]> memory_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace persistence
