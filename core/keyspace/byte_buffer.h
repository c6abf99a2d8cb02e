// SPDX-License-Identifier: MIT
//
// ByteBuffer: a mutable byte string on the heap, which APPEND, SETRANGE and SETBIT modify.
//
// Invariants: the allocation is allocation_size(size()) bytes, or more after a failed realloc() to
// a smaller size. So no capacity is stored. The buffer fits the 16-byte payload of an Entry. Bytes
// past size() are unspecified. If an allocation fails or a size exceeds kSizeMax, the function
// returns false and changes nothing. Sizes beyond 4 GiB are supported.
// Thread safety: guarded by the stripe lock of its key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace core::keyspace {

class ByteBuffer {
 public:
  // The size of a process' address space; larger requests do not reach the allocator.
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
  // Most buffers have no memory to free. For these, testing the pointer costs less than a call of
  // free().
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
  // Grows or shrinks the content to `size` bytes. New bytes are zero. The new pages of a large
  // growth take no memory until they are written.
  [[nodiscard]] bool resize_zeroed(size_t size);
  // Returns the additional bytes that resize_zeroed() needs to grow from `old_size` to `size`. A
  // realloc() that moves the block needs more for a moment. REQUIRES: old_size <= size.
  static size_t growth_bytes(size_t old_size, size_t size);
  // Resizes like resize_zeroed(), but the content of new bytes is unspecified. The caller
  // overwrites these bytes.
  [[nodiscard]] bool resize_for_overwrite(size_t size);
  // Removes the end of the content. REQUIRES: size <= this->size().
  void shrink(size_t size);

  // Bytes allocated on the heap.
  size_t memory_bytes() const;

 private:
  bool reallocate(size_t size);
  bool grow_with_fresh_pages(size_t size);

  char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace core::keyspace
