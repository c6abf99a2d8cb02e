// SPDX-License-Identifier: MIT
//
// LinkFailures: records why the link to the leader is down, and decides when to retry and which
// failures to log.
//
//   session ends with an Error ─► ReplicaController::end_session() ─► record_end() ─► log line,
//   pause before the next attempt, field master_link_down_reason of INFO
//
// Code that ends the link returns an Error with the cause and, in parentheses, the option that may
// help. All these errors are passed to record_end(), unless a change of the
// role has cancelled the session.
//
// Invariants: the pause before the next attempt doubles after each failure. It is short again after
// a link whose stream has made progress. The kind of failure determines the longest pause, and how
// long a stream must work to count as progress. A repeated cause is logged once a minute with its
// count.
// Thread safety: all members may be called from any thread.
// Source: docs/replication.md, "Following a leader".
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "core/result.h"

namespace server {

class LinkFailures {
 public:
  enum class Kind : uint8_t {
    kNoLink,    // there is no connection, or the leader does not serve at present
    kCut,       // the connection was lost after the stream had begun
    kUnusable,  // this server cannot use the leader's stream
    kInVain,    // like kUnusable, but bytes of a snapshot had already been received
    kRefused,   // this server has rejected the data, and would reject them again
  };

  // Records the end of a link. Returns the line to log; empty if the same cause was logged less
  // than a minute ago.
  std::string record_end(const core::Error& cause, Kind kind, int64_t now_us);
  // Called when this replica has applied the first command or transaction from a link to the
  // leader. Makes cause() empty. Returns the number of failures since the previous call.
  uint64_t record_progress(int64_t now_us);
  // Called after a change that may repair the link. Resets the pause, so that the next attempts
  // follow soon.
  void reset_pause() {
    const std::scoped_lock lock(mutex_);
    pause_ms_ = 0;
  }
  // Called when this server follows another leader, or becomes a leader. Forgets all failures.
  void forget();

  // Returns the pause between the last failure and the next attempt.
  int64_t pause_ms() const {
    const std::scoped_lock lock(mutex_);
    return pause_ms_;
  }
  // Returns the cause of the last failure; empty if the link never failed, or has worked after the
  // last failure.
  std::string cause() const {
    const std::scoped_lock lock(mutex_);
    return cause_;
  }
  // Returns whether several attempts to connect in a row made no progress. If so, the caller logs
  // only the line that record_end() returns for each attempt.
  bool is_repeating() const {
    const std::scoped_lock lock(mutex_);
    return failures_ > 1;
  }

 private:
  mutable std::mutex mutex_;  // this mutex guards the members below
  std::string cause_;
  uint64_t failures_ = 0;  // number of failures since record_progress() or forget()
  int64_t pause_ms_ = 0;
  // Time when the first command from the present link was applied; nullopt if none was applied.
  std::optional<int64_t> progress_us_;
  std::string logged_cause_;
  int64_t logged_us_ = 0;
  uint64_t unlogged_ = 0;  // number of failures since the last logged one
};

}  // namespace server
