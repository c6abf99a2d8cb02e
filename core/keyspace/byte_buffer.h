// SPDX-License-Identifier: MIT
//
// ByteBuffer: a mutable byte string on the heap, what APPEND, SETRANGE and SETBIT work on.
//
// Invariants: the allocation is always allocation_size(size()) bytes, so no capacity is stored and
// the buffer fits the 16-byte payload of an Entry; bytes past size() are unspecified.
// A failed allocation, or a size above kSizeMax, returns false and changes nothing. Sizes beyond
// 4 GiB are fine.
// Thread safety: none, guarded by the stripe lock of its key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace core::keyspace {

// Bytes the allocator really spends on a request of `bytes`: jemalloc's size classes, four per
// doubling. Growing in these steps wastes nothing there and keeps appends amortised O(1).
size_t allocation_size(size_t bytes);

class ByteBuffer {
 public:
  // All that a process can address; the allocator is not asked for more.
  static constexpr size_t kSizeMax = size_t{1} << 47;

  ByteBuffer() = default;
  ByteBuffer(ByteBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ByteBuffer& operator=(ByteBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;
  // Most are empty: a call to free() for nothing costs more than the test.
  ~ByteBuffer() {
    if (data_ != nullptr) std::free(data_);
  }

  char* data() { return data_; }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view view() const { return {data_, size_}; }

  // Replaces the content. `bytes` must not point into this buffer.
  [[nodiscard]] bool assign(std::string_view bytes);
  // `bytes` must not point into this buffer.
  [[nodiscard]] bool append(std::string_view bytes);
  // Grows to `size` bytes, the new ones zero (large growth costs no page until it is written), or
  // cuts the tail off.
  [[nodiscard]] bool resize_zeroed(size_t size);
  // The same, but what the new bytes are is unspecified: they are to be overwritten.
  [[nodiscard]] bool resize_for_overwrite(size_t size);
  // Cuts the tail off; REQUIRES: size <= this->size().
  void shrink(size_t size);

  // Heap bytes held.
  size_t memory_bytes() const { return data_ == nullptr ? 0 : allocation_size(size_); }

 private:
  bool reallocate(size_t size);
  bool grow_with_fresh_pages(size_t size);

  char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace core::keyspace
