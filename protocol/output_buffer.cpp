// SPDX-License-Identifier: MIT
#include "protocol/output_buffer.h"

#include <algorithm>
#include <limits>
#include <new>

namespace protocol {
namespace {

constexpr size_t kCapacityMin = 256;

}  // namespace

void OutputBuffer::shrink(size_t kept_bytes) {
  const size_t wanted = std::max(size(), kept_bytes);
  if (capacity_ <= wanted) return;
  move_to_front();
  reallocate(wanted);
}

void OutputBuffer::grow(size_t size_bytes) {
  if (size_bytes > std::numeric_limits<size_t>::max() / 4 - size()) throw std::bad_alloc();
  const size_t needed = size() + size_bytes;
  move_to_front();
  // When half the buffer had been consumed, the move alone was worth it; otherwise double, so
  // that a byte is moved a constant number of times on average.
  if (needed <= capacity_ / 2) return;
  reallocate(std::max({needed, capacity_ * 2, kCapacityMin}));
}

void OutputBuffer::reallocate(size_t capacity_bytes) {
  if (capacity_bytes == 0) {
    bytes_.reset();
  } else {
    char* const moved = static_cast<char*>(std::realloc(bytes_.get(), capacity_bytes));
    if (moved == nullptr) throw std::bad_alloc();
    // realloc has already freed or reused the old block.
    static_cast<void>(bytes_.release());
    bytes_.reset(moved);
  }
  capacity_ = capacity_bytes;
}

void OutputBuffer::move_to_front() {
  if (begin_ == 0) return;
  std::memmove(bytes_.get(), bytes_.get() + begin_, size());
  end_ -= begin_;
  begin_ = 0;
}

}  // namespace protocol
