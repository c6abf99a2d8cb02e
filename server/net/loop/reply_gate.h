// SPDX-License-Identifier: MIT
//
// ReplyGate: passes one thread's replies from the commands to the clients. It collects the replies
// of one iteration of the event loop and commits the append log once for all of them. It sends
// replies that are safe, and holds the other replies until these are safe.
//
// Commands append their replies to replies(). The replies appended since the last add() are called
// fresh. add() turns the fresh replies into a part, which belongs to one sink. flush() sends the
// parts, at the latest at the end of the iteration. Replies that depend on journal bytes not yet in
// the log are held by their sink, and released when the log has the bytes. If the log fails, each
// write is answered with an error instead. Replies to writes may also wait for acknowledgements of
// replicas.
//
// Invariants: a sink gets its replies in the order of its commands. No reply is sent before
// is_safe() holds for the offsets that it depends on. After add(sink), the sink must exist until
// the iteration of the event loop ends.
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
#include "server/net/loop/write_acks.h"

namespace server::cluster {
class ClusterState;
}

namespace server::net {

// ReplySpan: the range of bytes of one command's replies among the replies of a client.
struct ReplySpan {
  size_t begin = 0;
  size_t end = 0;
};

// ReplySink: receives the replies of a client. Calls are ignored once the client's connection has
// closed. If `whole` is not null, it is a buffer that holds exactly `replies`, and the sink may
// take the buffer's bytes by OutputBuffer::swap().
class ReplySink : public std::enable_shared_from_this<ReplySink> {
 public:
  // Sends the replies to the client.
  virtual void send(std::string_view replies, protocol::OutputBuffer* whole) = 0;
  // Stores the replies until release(). `writes` lists the range of each reply to a write command,
  // in ascending order.
  virtual void hold(std::string_view replies, std::span<const ReplySpan> writes,
                    protocol::OutputBuffer* whole) = 0;
  // Sends the held replies. A non-empty error replaces the replies to writes.
  virtual void release(std::string_view error) = 0;
  // Closes the client's connection. No further reply may be sent.
  virtual void close() = 0;

 protected:
  ~ReplySink() = default;
};

class ReplyGate {
 public:
  // `on_waiting(true)` requests that release_safe() is called when the log makes progress.
  ReplyGate(ReplyLog& log, std::function<void(bool)> on_waiting);
  ReplyGate(const ReplyGate&) = delete;
  ReplyGate& operator=(const ReplyGate&) = delete;

  // Sets the object that knows whether this server holds the permit, which a node of a cluster
  // needs to acknowledge writes. Without the permit, replies to writes are not sent and the clients
  // are disconnected. Must be called before the thread runs.
  void set_permit(const cluster::ClusterState* permit) { permit_ = permit; }

  // Makes replies to writes also wait until replicas have acknowledged the writes, as `acks`
  // reports. Must be called before the thread runs.
  void set_acks(WriteAcks* acks) { acks_ = acks; }

  // Returns the buffer to which commands append their replies. New replies follow those that add()
  // has already assigned to sinks.
  protocol::OutputBuffer& replies() { return replies_; }
  // Returns the replies that commands have appended since the last add().
  std::string_view fresh() const { return replies_.view().substr(fresh_begin_); }
  size_t fresh_begin() const { return fresh_begin_; }
  // Records that the bytes that start at `begin` are the reply to a command that may write.
  void record_write(size_t begin) { writes_.push_back({begin, replies_.size()}); }
  // Assigns the replies since the last add() to the sink, which belongs to one client.
  void add(ReplySink& sink);
  // Discards the replies since the last add().
  void drop_fresh() { truncate(fresh_begin_); }

  // Sends the added replies that are safe. Makes the sinks hold the replies that must still wait
  // for the append log or for replicas.
  void flush();
  // Calls flush(), and commits the log for the replies that are held.
  void end_round();
  // Called when the log makes progress or fails. Releases the replies that have become safe.
  void release_safe();

 private:
  // The offsets in the append log and in the replication stream that a sink's replies depend on; 0
  // if the replies depend on none.
  struct Needs {
    uint64_t log_offset = 0;
    uint64_t stream_offset = 0;
    bool has_written = false;
  };
  struct Part {
    ReplySink* sink;
    // Offset in replies_ at which this part ends. The part begins where the previous part ends.
    size_t end;
    Needs needs;
  };
  struct Held {
    std::shared_ptr<ReplySink> sink;
    Needs needs;
  };

  void truncate(size_t mark);
  // Sends the replies of `part` if they need not wait for the append log or for replicas. Otherwise
  // the part's sink holds these replies. They begin at the offset `begin` in replies_.
  void pass_on(const Part& part, size_t begin);
  void hold(const Part& part, std::string_view replies, size_t begin,
            protocol::OutputBuffer* whole);
  void release_held();
  bool may_acknowledge() const;
  bool is_safe(const Needs& needs) const;

  // Replies of more bytes than this are flushed before the iteration of the event loop ends, while
  // they are still in the cache.
  static constexpr size_t kGatheredMax = size_t{32} << 10;
  // Replies of at least this size to one client are handed to the sink without a copy.
  static constexpr size_t kHandedOverMin = size_t{256} << 10;
  // Capacity of the reply buffer that is retained between iterations of the event loop. The buffer
  // belongs to no client, so no client's limit applies to it.
  static constexpr size_t kReplyBytesKept = size_t{256} << 10;

  ReplyLog& log_;
  const cluster::ClusterState* permit_ = nullptr;
  // The replicas' acknowledgements, for which replies to writes wait. Null if replies do not wait
  // for replicas.
  WriteAcks* acks_ = nullptr;
  const std::function<void(bool)> on_waiting_;
  protocol::OutputBuffer replies_;
  size_t fresh_begin_ = 0;
  std::vector<ReplySpan> writes_;  // ranges of replies_ that hold replies to writes
  std::vector<Part> parts_;
  std::vector<Held> held_;
  std::vector<Held> looked_at_;  // sinks that release_held() is checking; otherwise empty
  size_t new_held_ = 0;          // number of sinks that began to hold replies since the last commit
  bool commit_is_due_ = false;
  // True if a reply that needs acknowledgements was held since the last acks_->request().
  bool awaits_acks_ = false;
};

}  // namespace server::net
