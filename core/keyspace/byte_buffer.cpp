// SPDX-License-Identifier: MIT
#include "core/keyspace/byte_buffer.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace core::keyspace {

namespace {

// From this size on calloc returns fresh pages instead of clearing memory.
constexpr size_t kFreshPagesMin = size_t{256} * 1024;
// Larger requests always fail, and rounding them up could overflow.
constexpr size_t kRoundedMax = size_t{1} << 62;

#if defined(__x86_64__)

// Smaller copies usually fit into the cache.
constexpr size_t kStreamedBytesMin = size_t{256} * 1024;

// Copies with non-temporal stores, which bypass the cache. A plain copy first reads the
// destination, which a fresh block does not need. It also evicts other data from the cache. Source:
// Intel's optimization manual, "Non-temporal stores".
void stream(char* to, const char* from, size_t size) {
  using Vector = __m128i;
  constexpr size_t kLineBytes = 64;
  const size_t head = -reinterpret_cast<uintptr_t>(to) % kLineBytes;
  std::memcpy(to, from, head);
  for (to += head, from += head, size -= head; size >= kLineBytes; size -= kLineBytes) {
    const auto* const source = reinterpret_cast<const Vector*>(from);
    auto* const target = reinterpret_cast<Vector*>(to);
    const Vector first = _mm_loadu_si128(source);
    const Vector second = _mm_loadu_si128(source + 1);
    const Vector third = _mm_loadu_si128(source + 2);
    const Vector fourth = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, first);
    _mm_stream_si128(target + 1, second);
    _mm_stream_si128(target + 2, third);
    _mm_stream_si128(target + 3, fourth);
    to += kLineBytes;
    from += kLineBytes;
  }
  // Non-temporal stores are not ordered with the stores that publish the copy to other threads.
  _mm_sfence();
  std::memcpy(to, from, size);
}

void copy(char* to, std::string_view bytes) {
  if (bytes.size() >= kStreamedBytesMin) return stream(to, bytes.data(), bytes.size());
  std::memcpy(to, bytes.data(), bytes.size());
}

#else

void copy(char* to, std::string_view bytes) {
  std::memcpy(to, bytes.data(), bytes.size());
}

#endif

}  // namespace

size_t allocation_size(size_t bytes) {
  if (bytes <= 8) return 8;
  if (bytes > kRoundedMax) return bytes;
  const size_t doubling = std::bit_width(bytes - 1) - 1;
  const size_t spacing = bytes <= 128 ? 16 : size_t{1} << (doubling - 2);
  return (bytes + spacing - 1) & ~(spacing - 1);
}

bool ByteBuffer::assign(std::string_view bytes) {
  if (bytes.empty()) {
    shrink(0);
    return true;
  }
  // Another size class needs a new block anyway. realloc would copy the old content for nothing.
  if (data_ == nullptr || allocation_size(bytes.size()) != allocation_size(size_)) {
    auto* fresh = static_cast<char*>(std::malloc(allocation_size(bytes.size())));
    if (fresh == nullptr) return false;
    std::free(data_);
    data_ = fresh;
  }
  copy(data_, bytes);
  size_ = bytes.size();
  return true;
}

bool ByteBuffer::append(std::string_view bytes) {
  if (bytes.empty()) return true;
  if (bytes.size() > kSizeMax - size_) return false;
  const size_t old_size = size_;
  if (!reallocate(old_size + bytes.size())) return false;
  std::memcpy(data_ + old_size, bytes.data(), bytes.size());
  return true;
}

bool ByteBuffer::resize_zeroed(size_t size) {
  if (size <= size_) {
    shrink(size);
    return true;
  }
  if (size > kSizeMax) return false;
  const size_t growth = size - size_;
  // Copying the old content pays off if it is not much larger than the growth that stays untouched.
  if (growth >= kFreshPagesMin && growth >= size_ / 2) return grow_with_fresh_pages(size);
  const size_t old_size = size_;
  if (!reallocate(size)) return false;
  std::memset(data_ + old_size, 0, growth);
  return true;
}

bool ByteBuffer::resize_for_overwrite(size_t size) {
  if (size > kSizeMax) return false;
  if (size > size_) return reallocate(size);
  shrink(size);
  return true;
}

void ByteBuffer::shrink(size_t size) {
  if (size == 0) {
    std::free(std::exchange(data_, nullptr));
    size_ = 0;
  } else if (!reallocate(size)) {
    // The allocator would not move the block to a smaller one, so the larger block is kept.
    size_ = size;
  }
}

// The content of new bytes is unspecified. REQUIRES: size > 0.
bool ByteBuffer::reallocate(size_t size) {
  if (data_ == nullptr || allocation_size(size) != allocation_size(size_)) {
    void* moved = std::realloc(data_, allocation_size(size));
    if (moved == nullptr) return false;
    data_ = static_cast<char*>(moved);
  }
  size_ = size;
  return true;
}

bool ByteBuffer::grow_with_fresh_pages(size_t size) {
  auto* fresh = static_cast<char*>(std::calloc(allocation_size(size), 1));
  if (fresh == nullptr) return false;
  if (size_ != 0) std::memcpy(fresh, data_, size_);
  std::free(data_);
  data_ = fresh;
  size_ = size;
  return true;
}

}  // namespace core::keyspace
