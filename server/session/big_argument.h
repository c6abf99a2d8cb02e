// SPDX-License-Identifier: MIT
//
// BigArgument: a big argument that was received into a separate buffer instead of the query
// buffer. So a command can store it without a copy.
//
//   ClientInput ── take_from(), commit() ──► BigArgument ── take() ──► value of a key
//
// Invariants: take() leaves the bytes where they are, so text() stays valid as long as the caller
// of take() keeps the bytes. Once the caller has changed or freed them, only head() may be read.
// Thread safety: belongs to the thread of its session.
// Source: PROTO_MBULK_BIG_ARG in Redis 7.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "core/keyspace/byte_buffer.h"

namespace server {

class BigArgument {
 public:
  // Minimum size of a big argument. A smaller one is copied, because the copy costs less than
  // additional reads.
  static constexpr size_t kBytesMin = size_t{64} << 10;
  // An argument of up to this size gets its memory at once. A bigger one gets its memory when this
  // number of its bytes has arrived, because the client may never send them.
  static constexpr size_t kAtOnceBytesMax = size_t{32} << 20;
  // Number of the argument's first bytes that stay readable after take(). The slow log needs them:
  // it stores at most this many bytes of a word.
  static constexpr size_t kHeadBytes = 128;

  // Takes over `bytes`, which has the argument's size. `offset` is the place in the command where
  // the argument begins. The client's buffer holds the command without the argument's bytes.
  BigArgument(core::keyspace::ByteBuffer bytes, size_t offset)
      : bytes_(std::move(bytes)), text_(bytes_.view()), offset_(offset) {
    assert(text_.size() >= kHeadBytes);
  }

  size_t offset() const { return offset_; }
  size_t received_bytes() const { return received_bytes_; }
  size_t missing_bytes() const { return text_.size() - received_bytes_; }
  bool is_whole() const { return missing_bytes() == 0; }

  // Returns the memory for the bytes that are still missing.
  std::span<char> missing() { return {bytes_.data() + received_bytes_, missing_bytes()}; }
  void commit(size_t size_bytes) { received_bytes_ += size_bytes; }
  // Copies missing bytes from the front of `fresh`, and removes them there.
  void take_from(std::string_view& fresh) {
    const size_t size_bytes = std::min(missing_bytes(), fresh.size());
    // An empty `fresh` may have a null address, which memcpy() does not accept.
    if (size_bytes == 0) return;
    std::memcpy(bytes_.data() + received_bytes_, fresh.data(), size_bytes);
    commit(size_bytes);
    fresh.remove_prefix(size_bytes);
  }

  std::string_view text() const { return text_; }
  // Returns the bytes and gives up ownership. REQUIRES: is_whole(); called once.
  core::keyspace::ByteBuffer take() {
    std::memcpy(head_.data(), text_.data(), head_.size());
    is_taken_ = true;
    return std::move(bytes_);
  }
  bool is_taken() const { return is_taken_; }
  // Returns the argument's first kHeadBytes bytes, which take() copies. Valid after take().
  std::string_view head() const { return {head_.data(), head_.size()}; }

 private:
  core::keyspace::ByteBuffer bytes_;
  std::string_view text_;
  size_t offset_;
  size_t received_bytes_ = 0;
  bool is_taken_ = false;
  std::array<char, kHeadBytes> head_{};
};

}  // namespace server
