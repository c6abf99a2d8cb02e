// SPDX-License-Identifier: MIT
//
// LinkFailures: why the link to the leader is down, when to retry, and which failures to log.
//
//   session ends with an Error ─► ReplicaController::end_session() ─► record_end() ─► log, pause,
//   INFO
//
// Code that ends the link returns an Error with the cause and, in parentheses, the option that may
// help. All of them arrive in record_end().
//
// Invariants: the pause before the next attempt doubles until the stream has made progress. The
// kind of failure determines its maximum, and how long a stream must work to count as progress. A
// repeated cause is logged once a minute with its count.
// Thread safety: all members may be called from any thread.
// Source: docs/replication.md, "Following a leader".
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace server {

class LinkFailures {
 public:
  enum class Kind : uint8_t {
    kNoLink,    // no connection, or the leader does not serve at present
    kCut,       // the connection was lost during the stream
    kUnusable,  // this server cannot use the leader's stream
    kInVain,    // as kUnusable, after the leader made a snapshot for it
    kRefused,   // the data were rejected, and will be rejected again
  };

  // Returns the line to log; empty for a repetition that is not due yet.
  std::string record_end(std::string_view cause, Kind kind, int64_t now_us);
  // Called when a unit of the stream was applied, which clears the cause. Returns the number of
  // failures since the last progress.
  uint64_t record_progress(int64_t now_us);
  // Called after a change that may help. Resets the pause, so that attempts follow soon.
  void reset_pause();
  // Called when the leader changes.
  void forget();

  // Returns the pause after the last failure.
  int64_t pause_ms() const;
  // Returns an empty text if the link never failed, or has worked since.
  std::string cause() const;
  // Returns whether several attempts in a row made no progress. Their other log lines are then
  // suppressed.
  bool is_repeating() const;

 private:
  mutable std::mutex mutex_;  // guards all below
  std::string cause_;
  uint64_t failures_ = 0;  // number since the last progress
  int64_t pause_ms_ = 0;
  std::optional<int64_t> progress_us_;  // time of the present link's first progress
  std::string logged_cause_;
  int64_t logged_us_ = 0;
  uint64_t unlogged_ = 0;  // failures since the last logged one
};

}  // namespace server
