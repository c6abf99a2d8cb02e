// SPDX-License-Identifier: MIT
//
// ReplyGate: the way of one thread's replies from the commands to the clients. It gathers those of
// a round, has the append log committed once for all of them, hands on what is safe and has the
// rest kept until it is.
//
// A sink's commands append to replies(); add() then closes its part, which leaves with flush(), or
// when the round ends. What depends on journal bytes that the log lacks is held by its sink, and
// released when the log has them, or with an error for each write when the log fails.
//
// Invariants: a sink gets its replies in the order of its commands; nothing leaves before is_safe()
// has said so of what it depends on. A sink with a part lives until the round ends.
// Thread safety: belongs to one I/O thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "protocol/output_buffer.h"
#include "server/durability/log/reply_log.h"

namespace server::net {

// Where the replies to a command are among others, in bytes.
struct ReplySpan {
  size_t begin = 0;
  size_t end = 0;
};

// Whoever gets replies. Calls may come after it has closed; it ignores them then.
class ReplySink : public std::enable_shared_from_this<ReplySink> {
 public:
  // The replies may leave.
  virtual void send(std::string_view replies) = 0;
  // They must be kept, and nothing of theirs may leave before release(). `writes`: those of them
  // that answer commands which may write, in their order.
  virtual void hold(std::string_view replies, std::span<const ReplySpan> writes) = 0;
  // What is held may leave. With an error it stands for what was answered to writes.
  virtual void release(std::string_view error) = 0;

 protected:
  ~ReplySink() = default;
};

class ReplyGate {
 public:
  // `on_waiting` is told whether progress of the log must be told by release_safe().
  ReplyGate(ReplyLog& log, std::function<void(bool)> on_waiting);
  ReplyGate(const ReplyGate&) = delete;
  ReplyGate& operator=(const ReplyGate&) = delete;

  // To be appended to; what has been added already stands before.
  protocol::OutputBuffer& replies() { return replies_; }
  // The replies since the last add().
  std::string_view fresh() const { return replies_.view().substr(fresh_begin_); }
  size_t fresh_begin() const { return fresh_begin_; }
  // What has been appended from `begin` on answers a command that may write.
  void note_write(size_t begin) { writes_.push_back({begin, replies_.size()}); }
  // They are the sink's.
  void add(ReplySink& sink);
  // Takes them back.
  void drop_fresh() { truncate(fresh_begin_); }

  // Hands on what has been added, or has it held.
  void flush();
  // The same, and has the log committed for those who wait.
  void end_round();
  // The log has come further, or fails: releases what has become safe. Others wait on.
  void release_safe();

 private:
  struct Part {
    ReplySink* sink;
    size_t end;  // in replies_; it begins where the one before ends
    uint64_t log_offset;
  };
  struct Held {
    std::shared_ptr<ReplySink> sink;
    uint64_t log_offset;
  };

  void truncate(size_t mark);
  void hold(ReplySink& sink, ReplySpan part, uint64_t log_offset);
  void release_held();

  // Replies that are handed on before the round ends, lest they leave the cache.
  static constexpr size_t kGatheredMax = size_t{32} << 10;
  // Memory for replies that outlives a round.
  static constexpr size_t kReplyBytesKept = size_t{2} << 20;

  ReplyLog& log_;
  const std::function<void(bool)> on_waiting_;
  protocol::OutputBuffer replies_;
  size_t fresh_begin_ = 0;
  std::vector<ReplySpan> writes_;  // in replies_
  std::vector<Part> parts_;
  std::vector<Held> held_;
  std::vector<Held> looked_at_;  // room for release_held()
  size_t new_held_ = 0;          // how many have begun to wait since the last commit
  bool commit_is_due_ = false;
};

}  // namespace server::net
