// SPDX-License-Identifier: MIT
#include "protocol/output_buffer.h"

#include <new>

#include "core/memory/growing_block.h"

namespace protocol {
namespace {

constexpr size_t kScratchBytesMin = 4096;

}  // namespace

void OutputBuffer::shrink(size_t kept_bytes) {
  const size_t wanted = std::max(size(), kept_bytes);
  if (capacity() <= wanted) return;
  move_to_front();
  resize(wanted);
}

bool OutputBuffer::grow(size_t size_bytes) {
  if (size_bytes > std::numeric_limits<size_t>::max() / 4 - size()) throw std::bad_alloc();
  const size_t needed = size() + size_bytes;
  if (has_overflowed_ || needed >= limit_) [[unlikely]] {
    overflow();
    return false;
  }
  move_to_front();
  // After move_to_front() all free memory is behind the content. So no new memory is needed if old
  // and new content together fill at most half of the capacity.
  if (needed > capacity() / 2) resize(core::next_capacity({bytes_, capacity_}, needed));
  return true;
}

void OutputBuffer::overflow() {
  if (has_overflowed_) return;
  has_overflowed_ = true;
  if (capacity() == end_) resize(end_ + kScratchBytesMin);
  bytes_[end_++] = '\0';
  whole_end_ = end_;
}

void OutputBuffer::make_scratch(size_t size_bytes) {
  end_ = whole_end_;
  if (capacity() - end_ >= size_bytes) return;
  resize(end_ + std::max(size_bytes, kScratchBytesMin));
}

void OutputBuffer::resize(size_t capacity_bytes) {
  const core::GrowingBlock block =
      core::resize({bytes_, capacity_}, capacity_bytes, std::min(end_, capacity_bytes));
  bytes_ = block.data;
  capacity_ = block.capacity_bytes;
}

void OutputBuffer::move_to_front() {
  if (begin_ == 0) return;
  std::memmove(bytes_, bytes_ + begin_, size());
  end_ -= begin_;
  whole_end_ -= std::min(whole_end_, begin_);
  begin_ = 0;
}

}  // namespace protocol
