// SPDX-License-Identifier: MIT
//
// ClientInput: bytes that one client has sent and that are not executed yet: incomplete commands
// and commands that are held back.
//
// Small commands are read into the thread's buffer. If a command has not arrived completely, its
// received bytes are stored here. The missing bytes of a big command are read directly behind the
// stored ones. The missing bytes of a big argument are read into separate memory (BigArgument).
//
// Invariants: for a client that has not logged in, at most kUnknownBytesMax are allocated, or
// with TLS Stream::kExtraBytesMax more. The memory exceeds the size of an announced command by at
// most one read plus an eighth of the memory. At most one argument is in separate memory. It
// belongs to the first stored request.
// Not thread-safe: a ClientInput belongs to one connection.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "core/memory/growing_block.h"
#include "server/session/big_argument.h"

namespace server::net {

// AnnouncedBytes: positions in the first buffered request, as offsets from the request's start.
// They are computed from the sizes that the request announces.
struct AnnouncedBytes {
  // Offset of the end of the argument that is arriving; 0 outside an argument.
  size_t end = 0;
  // Offset of the first byte of the arriving argument; 0 if it must not get separate memory.
  size_t body_offset = 0;
};

class ClientInput {
 public:
  // Size of one read, which holds about 2,000 small commands and fits into the second-level cache.
  static constexpr size_t kReadBytes = size_t{64} << 10;
  static constexpr size_t kUnknownBytesMax = size_t{20} << 10;

  ClientInput() = default;
  ~ClientInput() { forget(); }

  // The destination of the next read. Bytes that do not fit into `place` are read into the thread's
  // buffer. If `place` is empty, all bytes are read into that buffer.
  struct Room {
    std::span<char> place;
    size_t size_max;  // maximum number of bytes to read from the socket
  };
  // Returns the destination of the next read. The result is valid until the next call of a member.
  Room room(bool is_authenticated);
  // Records that `size_bytes` bytes were read into Room::place.
  void commit(size_t size_bytes);
  // Returns the stored bytes followed by `fresh`, without the bytes of a big argument. Without
  // stored bytes, which is the usual case, returns `fresh` itself. Valid until the next call.
  std::string_view join(std::string_view fresh);
  // Returns the big argument of the first request once it is complete; usually null.
  BigArgument* big_argument() const { return big_is_whole() ? big_.get() : nullptr; }
  // Stores `rest`: the last bytes of join()'s result, which the caller has not consumed yet.
  void keep(std::string_view rest, bool is_authenticated, AnnouncedBytes announced = {});
  void forget();
  // Frees all unused memory of an idle, authenticated client. Returns false if there was none, or
  // if moving the received bytes of a big argument is not worth it. That is so if these are at
  // least BigArgument::kAtOnceBytesMax, and more than the missing ones. Invalidates the results of
  // join() and room().
  bool give_back_free();

  // Returns the size of the memory to allocate for the missing bytes of the announced request. If
  // they get no separate memory, that is at most BigArgument::kAtOnceBytesMax. Returns 0 while a
  // big argument arrives, because its memory is already allocated.
  size_t awaited_bytes() const;
  size_t size() const { return kept_bytes() + (big_ ? big_->received_bytes() : 0); }
  // Returns whether the unexecuted bytes are stored in this object rather than in the thread's
  // buffer.
  bool is_kept() const { return kept_bytes() > 0; }
  // Returns the size of the complete big argument; 0 if there is none.
  size_t whole_argument_bytes() const { return big_is_whole() ? big_->received_bytes() : 0; }
  // Returns the allocated memory that is not in use.
  size_t free_bytes() const {
    return block_.capacity_bytes - kept_bytes() + (big_ ? big_->missing_bytes() : 0);
  }

 private:
  size_t kept_bytes() const { return end_ - begin_; }
  bool big_is_whole() const { return big_ && big_->is_whole(); }
  bool big_arrives() const { return big_ && !big_->is_whole(); }
  std::span<char> place_behind();
  bool gets_big_argument(size_t received_bytes) const;
  bool begin_big_argument(std::string_view request);
  void make_room(size_t fresh_bytes, size_t spare_bytes);
  void resize(size_t capacity_bytes);
  void move_to_front();

  core::GrowingBlock block_;
  size_t begin_ = 0;
  size_t end_ = 0;
  AnnouncedBytes announced_;
  std::unique_ptr<BigArgument> big_;
};

}  // namespace server::net
