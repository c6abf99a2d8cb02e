// SPDX-License-Identifier: MIT
//
// OutputBuffer: bytes to be sent to a peer, appended at the end and consumed from the front.
//
// Invariants: the bytes are contiguous; growth never clears new memory; memory is freed only by
// shrink(). Appending may move the bytes, so data() is valid until the next append.
//
// A buffer with a limit overflows if it would have to grow to the limit. From then on it drops new
// bytes, so that a command can finish. It then allocates at most room for the largest single
// append. truncate() to an earlier mark makes the content complete again.
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
  // Returns the number of allocated bytes, used or not.
  size_t capacity() const { return capacity_; }

  void append(std::string_view text) {
    if (text.empty() || !reserve(text.size())) return;
    std::memcpy(bytes_ + end_, text.data(), text.size());
    end_ += text.size();
  }

  // Makes room for `size_bytes` more bytes, so that the next appends do not move the bytes. Returns
  // false if the buffer has overflowed; bytes of that size would then be dropped.
  bool reserve(size_t size_bytes) { return capacity() - end_ >= size_bytes || grow(size_bytes); }

  // Returns room for `size_bytes` at the end. The caller writes bytes there and then commits some
  // or all of them.
  char* prepare(size_t size_bytes) {
    if (!reserve(size_bytes)) [[unlikely]]
      make_scratch(size_bytes);
    return bytes_ + end_;
  }
  void commit(size_t size_bytes) {
    assert(size_bytes <= capacity() - end_);
    end_ += size_bytes;
  }

  // Drops bytes at the front that were sent. Invalidates earlier marks.
  void consume(size_t size_bytes) {
    assert(size_bytes <= size());
    begin_ += size_bytes;
    if (begin_ == end_) clear();
  }

  void clear() {
    begin_ = end_ = 0;
    has_overflowed_ = false;
  }

  // Returns a mark. A handler that fails half way removes its partial reply with truncate(mark()).
  size_t mark() const { return size(); }
  void truncate(size_t mark) {
    assert(mark <= size() || has_overflowed_);
    if (mark == 0) return clear();
    end_ = begin_ + mark;
    if (end_ < whole_end_) has_overflowed_ = false;
  }

  // Sets a limit: the buffer overflows if it must allocate memory for content of at least this
  // size.
  void set_limit(size_t size_bytes) { limit_ = size_bytes; }
  // Returns the number of bytes that can be appended before the limit is reached.
  size_t room() const { return limit_ - std::min(limit_, size()); }
  // Returns whether bytes were dropped.
  bool has_overflowed() const { return has_overflowed_; }
  // Drops all further bytes, as if the limit were reached.
  void overflow();

  // Frees memory beyond the larger of `kept_bytes` and size().
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
  // After an overflow, provides writable memory for bytes that will be dropped.
  void make_scratch(size_t size_bytes);
  void resize(size_t capacity_bytes);
  void move_to_front();

  char* bytes_ = nullptr;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t limit_ = std::numeric_limits<size_t>::max();
  // After an overflow, the end of the content that is kept. Bytes appended later are dropped. Marks
  // from before the overflow are less than this offset.
  size_t whole_end_ = 0;
  bool has_overflowed_ = false;
};

}  // namespace protocol
