// SPDX-License-Identifier: MIT
//
// ClientOutput: the bytes that one client has not taken yet.
//
// Invariants: bytes leave in the order in which they came. While some are held, none leaves.
// Thread safety: none; belongs to one connection.
// Source: Redis' client-output-buffer-limit, as in OutputLimit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "protocol/output_buffer.h"
#include "protocol/reply_writer.h"
#include "server/loop/reply_gate.h"
#include "server/process/statistics.h"
#include "server/session/output_limit.h"
#include "server/transport/stream.h"

namespace server::net {

class ClientOutput {
 public:
  ClientOutput(Stream& stream, ThreadStatistics& counters) : stream_(stream), counters_(counters) {}
  ClientOutput(const ClientOutput&) = delete;
  ClientOutput& operator=(const ClientOutput&) = delete;

  // Sends as much as the stream accepts now, unless earlier bytes are pending, and keeps the rest.
  // send() and flush() return false when the stream is broken. `whole` as in ReplySink.
  [[nodiscard]] bool send(std::string_view bytes, protocol::OutputBuffer* whole = nullptr);
  // Keeps bytes behind the rest; flush() sends them.
  void keep(std::string_view bytes);
  // Sends kept bytes as far as the stream accepts them. `is_ready`: the stream has reported that it
  // is writable.
  [[nodiscard]] bool flush(bool is_ready);

  // Keeps bytes that may not be sent before release(); `writes` and `whole` as in ReplySink.
  void hold(std::string_view bytes, std::span<const ReplySpan> writes,
            protocol::OutputBuffer* whole = nullptr);
  // A non-empty error replaces each held reply to a write, except replies that are errors already.
  // Returns the number of replies replaced.
  size_t release(std::string_view error, protocol::RespVersion resp);
  bool is_held() const { return is_held_; }

  // Drops the bytes and their memory. REQUIRES: nothing is sent from now on.
  void forget() { unsent_ = protocol::OutputBuffer(); }

  // The stream may hold bytes after it has received some, too.
  void record_held_by_stream(bool holds_bytes) { stream_holds_bytes_ = holds_bytes; }
  bool empty() const { return unsent_.empty() && !stream_holds_bytes_; }
  size_t size() const { return unsent_.size(); }
  size_t capacity() const { return unsent_.capacity(); }
  // Since the connection began.
  uint64_t sent_bytes() const { return sent_bytes_; }
  // Whether flush() should be called once the stream is writable.
  bool wants_to_send() const { return stream_holds_bytes_ || (!unsent_.empty() && !is_held_); }
  // `now_us` is monotonic.
  bool is_over(const BufferLimit& limit, int64_t now_us) {
    return limit_.is_broken(unsent_.size(), limit, now_us);
  }
  // The most bytes since the last restart.
  size_t peak() const { return peak_; }
  void restart_peak() { peak_ = unsent_.size(); }
  // Whether the stream has taken bytes since the last call.
  bool has_moved() { return std::exchange(has_moved_, false); }

 private:
  // Hands bytes to the stream; how many it took.
  size_t send_now(std::string_view bytes);
  // Keeps the bytes behind the first `sent`, without a copy where `whole` allows that.
  void keep_rest(std::string_view bytes, size_t sent, protocol::OutputBuffer* whole);
  void record_size(size_t more = 0) { peak_ = std::max(peak_, unsent_.size() + more); }

  static constexpr size_t kHeldWritesKept = 32;

  Stream& stream_;
  ThreadStatistics& counters_;
  protocol::OutputBuffer unsent_;
  OutputLimit limit_;
  std::vector<ReplySpan> held_writes_;  // in unsent_
  size_t peak_ = 0;
  uint64_t sent_bytes_ = 0;
  bool is_held_ = false;
  bool is_full_ = false;             // the stream takes nothing until it is ready
  bool stream_holds_bytes_ = false;  // that it has taken
  bool is_broken_ = false;
  bool has_moved_ = false;
};

}  // namespace server::net
