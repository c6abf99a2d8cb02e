// SPDX-License-Identifier: MIT
//
// LinkFailures: why the link to the leader is down, when it is tried again, and which of its ends
// are logged.
//
//   session ends with an Error ─► Follower::end_session() ─► note_end() ─► log, pause, INFO
//
// Whatever takes the link down returns an Error that says the cause and, in parentheses, the option
// that helps; note_end() is the one place that it reaches.
//
// Invariants: the pause before the next attempt doubles until the stream has made progress. The
// kind of failure says how far it grows, and how long a stream must work to count as progress. A
// cause that repeats itself is logged once a minute with its count.
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
    kNoLink,    // there was no connection, or the leader serves nothing now
    kCut,       // the connection was lost while the stream came
    kUnusable,  // the leader served a stream that this server cannot use
    kInVain,    // as kUnusable, after a snapshot that the leader made for it
    kRefused,   // the data themselves were refused, as they will be again
  };

  // The line to log, empty for a repetition that waits for its minute.
  std::string note_end(std::string_view cause, Kind kind, int64_t now_us);
  // A unit of the stream was applied, so that the cause is gone. Returns how often the link has
  // failed since the last one.
  uint64_t note_progress(int64_t now_us);
  // Something has changed that may help: the next attempts come soon again.
  void reset_pause();
  // Another leader.
  void forget();

  // How long to wait after the last end.
  int64_t pause_ms() const;
  // Empty when the link never failed, or has worked since.
  std::string cause() const;
  // Several attempts in a row made no progress; what each says of itself is no news.
  bool is_repeating() const;

 private:
  mutable std::mutex mutex_;  // guards all below
  std::string cause_;
  uint64_t failures_ = 0;  // since the last progress
  int64_t pause_ms_ = 0;
  std::optional<int64_t> progress_us_;  // when the present link first made some
  std::string logged_cause_;
  int64_t logged_us_ = 0;
  uint64_t unlogged_ = 0;  // ends since then
};

}  // namespace server
