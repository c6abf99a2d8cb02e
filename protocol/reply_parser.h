// SPDX-License-Identifier: MIT
//
// ReplyParser reads replies (RESP2 and RESP3, without streamed types) from a buffer that the caller
// owns.
//
// Contract: as for RequestParser, `buffered` begins at the first byte that is not yet consumed.
// After every call, whatever its status, the caller drops consumed() bytes from the front.
// kNeedMore also consumes the elements that are already in the tree.
//
// Invariants: the result does not depend on how the bytes were divided among calls. Announced sizes
// allocate nothing. Sizes, counts and depth are checked against Limits before anything is built.
// Thread safety: none; one parser per connection.
// Source: RESP3 (https://github.com/redis/redis-specifications/blob/master/protocol/RESP3.md).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "protocol/limits.h"
#include "protocol/reply.h"

namespace protocol {

class ReplyParser {
 public:
  enum class Status { kNeedMore, kReply, kError };

  explicit ReplyParser(const Limits& limits = {}) : limits_(limits) {}

  Status parse(std::string_view buffered);

  // Returns the parsed reply. The reference is valid after kReply until the next parse(). Move the
  // reply out to keep it.
  Reply& reply() { return reply_; }

  size_t consumed() const { return consumed_; }

  // Describes the invalid bytes after kError. The connection must then be closed.
  std::string_view error() const { return error_; }

 private:
  enum class Step : uint8_t { kContinue, kReply, kNeedMore, kError };
  // A received aggregate whose elements are not complete yet.
  struct Frame {
    Reply reply;
    size_t elements_left;
  };

  Step read_one(std::string_view rest);
  Step read_bulk(Reply reply, std::string_view rest, size_t line_size);
  Step open_aggregate(Reply reply, std::string_view count_text);
  bool read_scalar(Reply& reply, std::string_view text);
  Step deliver(Reply reply);
  Step fail(std::string_view reason);

  Limits limits_;
  std::vector<Frame> open_;
  std::vector<Reply> pending_attributes_;
  Reply reply_;
  size_t consumed_ = 0;
  // The offset at which the search for a line end continues, relative to the first byte not
  // consumed.
  size_t searched_ = 0;
  std::string_view error_;
};

}  // namespace protocol
