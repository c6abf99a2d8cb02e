// SPDX-License-Identifier: MIT
//
// ScanArguments: the arguments of SCAN and similar commands. ReplyList: the list of elements in the
// reply of such a command.
//
// Invariants: a ScanArguments without an error is valid for Keyspace::scan().
// Thread safety: each object belongs to one thread.
// Source: https://redis.io/docs/latest/commands/scan/.
#pragma once

#include <optional>
#include <string_view>

#include "core/glob.h"
#include "protocol/output_buffer.h"
#include "protocol/reply_writer.h"
#include "server/dispatch/context.h"

namespace server {

inline constexpr std::string_view kInvalidCursor = "ERR invalid cursor";

class NamePattern {
 public:
  explicit NamePattern(std::string_view pattern)
      : takes_all_(pattern == "*"), glob_(takes_all_ ? std::string_view() : pattern) {}

  // As in Redis, KEYS * and SCAN with MATCH * also return the key with the empty name. This needs a
  // check of its own, because the Glob "*" does not match an empty text.
  bool fits(std::string_view name) const { return takes_all_ || glob_.matches(name); }

 private:
  bool takes_all_;
  core::Glob glob_;
};

// ReplyList collects elements whose number is known only at the end.
class ReplyList {
 public:
  // The list has the protocol version of `reply`. Its size is limited to the bytes that `reply` can
  // still accept.
  explicit ReplyList(protocol::ReplyWriter& reply) : writer_(buffer_, reply.version()) {
    buffer_.set_limit(reply.buffer().room());
  }

  void add(std::string_view text) { next().bulk(text); }
  // Returns the writer of the next element. The caller must write exactly one value.
  protocol::ReplyWriter& next() {
    ++count_;
    return writer_;
  }
  void write_to(protocol::ReplyWriter& reply) const {
    if (buffer_.has_overflowed()) return reply.buffer().overflow();
    reply.array(count_);
    reply.buffer().append(buffer_.view());
  }

 private:
  protocol::OutputBuffer buffer_;
  protocol::ReplyWriter writer_;
  size_t count_ = 0;
};

struct ScanArguments {
  core::keyspace::ScanOptions options;
  std::string_view pattern = "*";
  std::optional<std::string_view> type;  // type of the keys to list; nullopt selects all types
  std::string_view error;
};

// Parses "cursor [MATCH pattern] [COUNT count]", and "[TYPE type]" if `knows_type`.
ScanArguments parse_scan(const Context& ctx, bool knows_type);

}  // namespace server
