// SPDX-License-Identifier: MIT
//
// OutputBuffer: bytes on their way to a peer; appended at the back, consumed from the front.
//
// Invariants: the bytes are contiguous; growth never fills with zeros; memory goes back only when
// shrink() asks. Appending may move the bytes, so data() lives until the next append.
// Thread safety: none; one buffer per connection.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace protocol {

class OutputBuffer {
 public:
  OutputBuffer() = default;
  OutputBuffer(OutputBuffer&& other) noexcept { swap(other); }
  OutputBuffer& operator=(OutputBuffer&& other) noexcept {
    OutputBuffer(std::move(other)).swap(*this);
    return *this;
  }

  const char* data() const { return bytes_.get() + begin_; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  std::string_view view() const { return {data(), size()}; }
  // Bytes of memory held, used or not.
  size_t capacity() const { return capacity_; }

  void append(std::string_view text) {
    if (text.empty()) return;
    std::memcpy(prepare(text.size()), text.data(), text.size());
    commit(text.size());
  }

  // Makes room for `size_bytes` more, so that the next appends do not move the bytes.
  void reserve(size_t size_bytes) {
    if (capacity_ - end_ < size_bytes) grow(size_bytes);
  }

  // Room for `size_bytes` at the back, to be written and then committed in part or in full.
  char* prepare(size_t size_bytes) {
    reserve(size_bytes);
    return bytes_.get() + end_;
  }
  void commit(size_t size_bytes) {
    assert(size_bytes <= capacity_ - end_);
    end_ += size_bytes;
  }

  // Drops bytes that were sent. Marks taken before are void.
  void consume(size_t size_bytes) {
    assert(size_bytes <= size());
    begin_ += size_bytes;
    if (begin_ == end_) clear();
  }

  void clear() { begin_ = end_ = 0; }

  // A handler that fails half way takes its partial reply back with truncate(mark()).
  size_t mark() const { return size(); }
  void truncate(size_t mark) {
    assert(mark <= size());
    end_ = begin_ + mark;
  }

  // Gives memory back beyond `kept_bytes` and what the content needs.
  void shrink(size_t kept_bytes = 0);

  void swap(OutputBuffer& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };

  void grow(size_t size_bytes);
  void reallocate(size_t capacity_bytes);
  void move_to_front();

  // malloc and realloc rather than new: a large block then grows in place or by remapping.
  std::unique_ptr<char, Free> bytes_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t capacity_ = 0;
};

}  // namespace protocol
