// SPDX-License-Identifier: MIT
//
// ClientInput: bytes that one client has sent and that are not executed yet: incomplete commands,
// and commands that are held back.
//
// Small commands come through the thread's read buffer, and only an incomplete rest is kept. When
// the rest of a big command is awaited, the client's next bytes are read behind the kept ones. When
// that is the rest of one big argument, they are read into memory of its own (BigArgument).
//
// Invariants: for a client that has not logged in, at most kUnknownBytesMax are kept and allocated.
// The memory exceeds what an announced command needs by a read and an eighth at most. Only the
// first request of the kept bytes has a big argument apart, and only one.
// Thread safety: none; belongs to one connection.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "core/growing_block.h"
#include "server/session/big_argument.h"

namespace server::net {

// Known ends of the first request among the kept bytes, counted from their beginning.
struct AnnouncedBytes {
  size_t end = 0;          // of the argument that is arriving; 0 outside of one
  size_t body_offset = 0;  // where that argument's bytes begin; 0: it must not be apart
};

class ClientInput {
 public:
  // One read batch: about 2,000 small commands; fits the second-level cache.
  static constexpr size_t kReadBytes = size_t{64} << 10;
  static constexpr size_t kUnknownBytesMax = size_t{20} << 10;

  ClientInput() = default;
  ~ClientInput() { forget(); }
  ClientInput(const ClientInput&) = delete;
  ClientInput& operator=(const ClientInput&) = delete;

  // Where the next read belongs. Bytes beyond `place` belong into the thread's buffer, as all do
  // when it is empty.
  struct Room {
    std::span<char> place;
    size_t size_max;  // of the read
  };
  // Valid until the next call.
  Room room(bool is_authenticated);
  // This many bytes were read to the place.
  void commit(size_t size_bytes);
  // The kept bytes followed by the fresh ones, without a big argument; without kept bytes, as
  // usual, a view of the fresh ones. Valid until the next call.
  std::string_view join(std::string_view fresh);
  // An argument that belongs into those bytes, once it is whole; null as a rule.
  BigArgument* big_argument() const { return big_is_whole() ? big_.get() : nullptr; }
  // Keeps the end of the bytes that join() returned.
  void keep(std::string_view rest, bool is_authenticated, AnnouncedBytes announced = {});
  void forget();
  // Gives back all memory beyond the kept bytes; false when there was none. For an idle client that
  // has logged in. Views from join() and room() are void.
  bool give_back_free();

  // Bytes that the announced request still lacks, and for which room is made next.
  size_t awaited_bytes() const;
  size_t size() const { return kept_bytes() + (big_ ? big_->received_bytes() : 0); }
  // Whether the bytes lie in memory of their own, not in the thread's buffer.
  bool is_kept() const { return kept_bytes() > 0; }
  // Bytes of an argument that is apart and whole.
  size_t whole_argument_bytes() const { return big_is_whole() ? big_->received_bytes() : 0; }
  // Memory held beyond size().
  size_t free_bytes() const {
    return block_.capacity_bytes - kept_bytes() + (big_ ? big_->missing_bytes() : 0);
  }

 private:
  size_t kept_bytes() const { return end_ - begin_; }
  bool big_is_whole() const { return big_ && big_->is_whole(); }
  bool big_arrives() const { return big_ && !big_->is_whole(); }
  std::span<char> place_behind();
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
