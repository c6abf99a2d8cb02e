// SPDX-License-Identifier: MIT
#include "core/keyspace/byte_buffer.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/memory/allocation_size.h"

namespace core::keyspace {

namespace {

// For blocks of this size or more, calloc returns fresh pages instead of clearing memory.
constexpr size_t kFreshPagesMin = size_t{256} * 1024;

// Returns whether a growth takes a new block from calloc. That costs a copy of the old content, but
// the pages of the added zeros stay untouched. The copy pays off if the old content is at most
// twice as large as the added part.
bool takes_fresh_pages(size_t old_size, size_t size) {
  const size_t growth = size - old_size;
  return growth >= kFreshPagesMin && growth >= old_size / 2;
}

}  // namespace

size_t ByteBuffer::memory_bytes() const {
  return data_ == nullptr ? 0 : allocation_size(size_);
}

bool ByteBuffer::assign(std::string_view bytes) {
  if (bytes.empty()) {
    shrink(0);
    return true;
  }
  // A new size class needs a new block. The block comes from malloc(), because realloc() would copy
  // the old content, which is replaced anyway.
  if (data_ == nullptr || allocation_size(bytes.size()) != allocation_size(size_)) {
    auto* fresh = static_cast<char*>(std::malloc(allocation_size(bytes.size())));
    if (fresh == nullptr) return false;
    std::free(data_);
    data_ = fresh;
  }
  std::memcpy(data_, bytes.data(), bytes.size());
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
  if (takes_fresh_pages(size_, size)) return grow_with_fresh_pages(size);
  const size_t old_size = size_;
  if (!reallocate(size)) return false;
  std::memset(data_ + old_size, 0, growth);
  return true;
}

size_t ByteBuffer::growth_bytes(size_t old_size, size_t size) {
  return takes_fresh_pages(old_size, size) ? size : size - old_size;
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
    // realloc() to a smaller size has failed, so the buffer keeps the larger block.
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
