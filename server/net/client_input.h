// SPDX-License-Identifier: MIT
//
// ClientInput: bytes that one client has sent and that are not executed yet: incomplete commands,
// and commands that are held back.
//
// Small commands come through the thread's read buffer, and only what is left of them is kept. When
// the rest of a big command is awaited, the client's next bytes are read behind the kept ones.
//
// Invariants: for a client that has not logged in, at most kUnknownBytesMax are kept and allocated.
// The memory exceeds what an announced command needs by a read and an eighth at most.
// Thread safety: none; belongs to one connection.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/growing_block.h"

namespace server::net {

class ClientInput {
 public:
  // One read batch: about 2,000 small commands; fits the second-level cache.
  static constexpr size_t kReadBytes = size_t{64} << 10;
  static constexpr size_t kUnknownBytesMax = size_t{20} << 10;

  ClientInput() = default;
  ~ClientInput() { forget(); }
  ClientInput(const ClientInput&) = delete;
  ClientInput& operator=(const ClientInput&) = delete;

  // Size limit of one read into the thread's buffer.
  size_t room(bool is_authenticated) const;
  // Where the next read belongs, with at least kExtraBytesMax of a stream; empty when that is the
  // thread's buffer. Valid until the next call.
  std::span<char> room_behind();
  // So many bytes were read there.
  void commit(size_t size_bytes) { end_ += size_bytes; }
  // The kept bytes followed by the fresh ones; without kept bytes, as usual, a view of the fresh
  // ones. Valid until the next call.
  std::string_view join(std::string_view fresh);
  // Keeps the end of the bytes that join() returned. `announced_bytes`: what the request that they
  // begin is known to have, or 0.
  void keep(std::string_view rest, bool is_authenticated, size_t announced_bytes = 0);
  void forget();

  // Bytes that the announced request still lacks, and for which room is made next.
  size_t awaited_bytes() const;
  size_t size() const { return end_ - begin_; }
  // Whether the bytes lie in memory of their own, not in the thread's buffer.
  bool is_kept() const { return size() > 0; }
  // Memory held beyond those bytes.
  size_t free_bytes() const { return block_.capacity_bytes - size(); }

 private:
  void make_room(size_t fresh_bytes, size_t spare_bytes);
  void resize(size_t capacity_bytes);
  void move_to_front();

  core::GrowingBlock block_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t announced_bytes_ = 0;
};

}  // namespace server::net
