// SPDX-License-Identifier: MIT
//
// ClientOutput: the unsent replies of one client.
//
// Invariants: bytes are sent in the order in which they were added. While some bytes are held, none
// are sent.
// Thread safety: not thread-safe. An object belongs to one connection.
// Source: Redis' client-output-buffer-limit, as in OutputLimit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/output_buffer.h"
#include "protocol/reply_writer.h"
#include "server/base/metrics/statistics.h"
#include "server/base/transport/stream.h"
#include "server/net/loop/reply_gate.h"
#include "server/session/output_limit.h"

namespace server::net {

class ClientOutput {
 public:
  ClientOutput(Stream& stream, ThreadStatistics& counters) : stream_(stream), counters_(counters) {}
  ClientOutput(const ClientOutput&) = delete;
  ClientOutput& operator=(const ClientOutput&) = delete;

  // Sends as much as the stream accepts now, unless earlier bytes are pending, and stores the rest.
  // send() and flush() return false if the stream is broken. `whole` has the same meaning as in
  // ReplySink.
  [[nodiscard]] bool send(std::string_view bytes, protocol::OutputBuffer* whole = nullptr);
  // Appends bytes to the unsent ones; flush() sends them.
  void keep(std::string_view bytes);
  // Sends unsent bytes as far as the stream accepts them. `is_ready` is true if the stream has
  // reported that it is writable.
  [[nodiscard]] bool flush(bool is_ready);

  // Stores bytes that must not be sent before release(). `writes` and `whole` have the same meaning
  // as in ReplySink.
  void hold(std::string_view bytes, std::span<const ReplySpan> writes,
            protocol::OutputBuffer* whole = nullptr);
  // Allows the held bytes to be sent. A non-empty error replaces each held reply to a write, except
  // replies that are errors already. Returns the number of replies replaced.
  size_t release(std::string_view error, protocol::RespVersion resp);
  bool is_held() const { return is_held_; }

  // Frees the unsent bytes. REQUIRES: nothing is sent after this call.
  void forget() { unsent_ = protocol::OutputBuffer(); }

  // Records whether the stream holds unsent bytes. Must also be called after the stream has
  // received bytes, because a TLS stream may then have bytes to send.
  void record_held_by_stream(bool holds_bytes) { stream_holds_bytes_ = holds_bytes; }
  bool empty() const { return unsent_.empty() && !stream_holds_bytes_; }
  size_t size() const { return unsent_.size(); }
  size_t capacity() const { return unsent_.capacity(); }
  // Returns the bytes sent since the connection began.
  uint64_t sent_bytes() const { return sent_bytes_; }
  // Returns whether flush() must be called once the stream is writable.
  bool wants_to_send() const { return stream_holds_bytes_ || (!unsent_.empty() && !is_held_); }
  // Returns whether the unsent replies reach `limit`, a value of client-output-buffer-limit.
  // `now_us` is monotonic.
  bool is_over(const BufferLimit& limit, int64_t now_us) {
    return limit_.is_broken(unsent_.size(), limit, now_us);
  }
  // Returns the largest number of unsent bytes since the last call of restart_peak().
  size_t peak() const { return peak_; }
  void restart_peak() { peak_ = unsent_.size(); }
  // Returns whether the stream has accepted bytes since the last call of has_moved().
  bool has_moved() { return std::exchange(has_moved_, false); }

 private:
  // Passes bytes to the stream, and returns how many it accepted.
  size_t send_now(std::string_view bytes);
  // Stores all bytes after the first `sent` bytes. `whole` is the buffer that contains `bytes`, or
  // null. If most bytes are unsent and no other bytes are stored, takes the buffer without a copy.
  void keep_rest(std::string_view bytes, size_t sent, protocol::OutputBuffer* whole);
  void record_size(size_t more = 0) { peak_ = std::max(peak_, unsent_.size() + more); }

  static constexpr size_t kHeldWritesKept = 32;

  Stream& stream_;
  ThreadStatistics& counters_;
  protocol::OutputBuffer unsent_;
  OutputLimit limit_;
  std::vector<ReplySpan> held_writes_;  // ranges of unsent_ that hold the replies to writes
  size_t peak_ = 0;
  uint64_t sent_bytes_ = 0;
  bool is_held_ = false;
  bool is_full_ = false;             // true if nothing can be sent before the socket is writable
  bool stream_holds_bytes_ = false;  // true if the stream has accepted bytes that it has not sent
  bool is_broken_ = false;
  bool has_moved_ = false;
};

}  // namespace server::net
