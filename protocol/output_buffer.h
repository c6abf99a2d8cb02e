// SPDX-License-Identifier: MIT
//
// OutputBuffer: bytes on their way to a peer; appended at the back, consumed from the front.
//
// Invariants: the bytes are contiguous; growth never fills with zeros; memory goes back only when
// shrink() asks. Appending may move the bytes, so data() lives until the next append.
//
// A buffer with a limit overflows when it would have to grow to the limit. From then on it drops
// bytes, so that a command may go on to its end without taking memory. The content is whole again
// after truncate() to a mark from before.
// Thread safety: none; one buffer per connection.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

namespace protocol {

class OutputBuffer {
 public:
  OutputBuffer() = default;
  ~OutputBuffer() { resize(0); }
  OutputBuffer(OutputBuffer&& other) noexcept { swap(other); }
  OutputBuffer& operator=(OutputBuffer&& other) noexcept {
    OutputBuffer(std::move(other)).swap(*this);
    return *this;
  }

  const char* data() const { return bytes_ + begin_; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  std::string_view view() const { return {data(), size()}; }
  // Bytes of memory held, used or not.
  size_t capacity() const { return capacity_; }

  void append(std::string_view text) {
    if (text.empty() || !reserve(text.size())) return;
    std::memcpy(bytes_ + end_, text.data(), text.size());
    end_ += text.size();
  }

  // Makes room for `size_bytes` more, so that the next appends do not move the bytes. False: the
  // buffer has overflowed, and bytes of that size would be dropped.
  bool reserve(size_t size_bytes) { return capacity() - end_ >= size_bytes || grow(size_bytes); }

  // Room for `size_bytes` at the back, to be written and then committed in part or in full.
  char* prepare(size_t size_bytes) {
    if (!reserve(size_bytes)) [[unlikely]]
      make_scratch(size_bytes);
    return bytes_ + end_;
  }
  void commit(size_t size_bytes) {
    assert(size_bytes <= capacity() - end_);
    end_ += size_bytes;
  }

  // Drops bytes that were sent. Marks taken before are void.
  void consume(size_t size_bytes) {
    assert(size_bytes <= size());
    begin_ += size_bytes;
    if (begin_ == end_) clear();
  }

  void clear() {
    begin_ = end_ = 0;
    has_overflowed_ = false;
  }

  // A handler that fails half way takes its partial reply back with truncate(mark()).
  size_t mark() const { return size(); }
  void truncate(size_t mark) {
    assert(mark <= size() || has_overflowed_);
    if (mark == 0) return clear();
    end_ = begin_ + mark;
    if (end_ < whole_end_) has_overflowed_ = false;
  }

  // The size that the content must not reach by growth.
  void set_limit(size_t size_bytes) { limit_ = size_bytes; }
  // How many bytes more would reach it.
  size_t room() const { return limit_ - std::min(limit_, size()); }
  // Whether bytes were dropped.
  bool has_overflowed() const { return has_overflowed_; }
  // Drops all bytes that come, as if the limit were reached.
  void overflow();

  // Gives memory back beyond `kept_bytes` and what the content needs.
  void shrink(size_t kept_bytes = 0);

  void swap(OutputBuffer& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(capacity_, other.capacity_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
    std::swap(limit_, other.limit_);
    std::swap(whole_end_, other.whole_end_);
    std::swap(has_overflowed_, other.has_overflowed_);
  }

 private:
  bool grow(size_t size_bytes);
  // After an overflow: room for bytes that are dropped.
  void make_scratch(size_t size_bytes);
  void resize(size_t capacity_bytes);
  void move_to_front();

  char* bytes_ = nullptr;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t limit_ = std::numeric_limits<size_t>::max();
  // After an overflow: all marks from before are below it, and dropped bytes lie behind it.
  size_t whole_end_ = 0;
  bool has_overflowed_ = false;
};

}  // namespace protocol
