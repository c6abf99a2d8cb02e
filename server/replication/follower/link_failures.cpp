// SPDX-License-Identifier: MIT
#include "server/replication/follower/link_failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/clock.h"

namespace server {
namespace {

constexpr int64_t kFirstPauseMs = 20;
constexpr int64_t kLongestPauseMs = 1000;
// A snapshot costs the leader a child, and a stream is refused at the same command each time.
constexpr int64_t kLongestPauseInVainMs = 10'000;
constexpr int64_t kLogEveryUs = 60 * core::kSecondUs;
// The causes hold words of the leader.
constexpr size_t kCauseBytesMax = 500;

}  // namespace

std::string LinkFailures::note_end(std::string_view cause, Kind kind, int64_t now_us) {
  const std::scoped_lock lock(mutex_);
  cause_ = cause.substr(0, kCauseBytesMax);
  ++failures_;
  const bool is_refused = kind == Kind::kUnusable || kind == Kind::kInVain;
  const int64_t longest = is_refused ? kLongestPauseInVainMs : kLongestPauseMs;
  // A stream that stops soon behind each snapshot costs the leader a child every time.
  const int64_t worked_us_min = kind == Kind::kInVain ? kLongestPauseInVainMs * 1000 : 0;
  const bool has_worked = progress_us_ && now_us - *progress_us_ >= worked_us_min;
  progress_us_.reset();
  const bool is_first = pause_ms_ == 0 || has_worked || kind == Kind::kCut;
  pause_ms_ = is_first ? kFirstPauseMs : std::min(pause_ms_ * 2, longest);
  const bool is_same = cause_ == logged_cause_;
  if (is_same && now_us - logged_us_ < kLogEveryUs) {
    ++unlogged_;
    return {};
  }
  std::string line = fmt::format("The link to the leader is down: {}", cause_);
  if (unlogged_ > 0 && is_same) {
    line += fmt::format("; {} times in {} seconds", unlogged_ + 1,
                        (now_us - logged_us_) / core::kSecondUs);
  } else if (unlogged_ > 0) {
    line += fmt::format("; {} times before: {}", unlogged_, logged_cause_);
  }
  logged_cause_ = cause_;
  logged_us_ = now_us;
  unlogged_ = 0;
  return line;
}

uint64_t LinkFailures::note_progress(int64_t now_us) {
  const std::scoped_lock lock(mutex_);
  cause_.clear();
  progress_us_ = now_us;
  return std::exchange(failures_, 0);
}

void LinkFailures::reset_pause() {
  const std::scoped_lock lock(mutex_);
  pause_ms_ = 0;
}

void LinkFailures::forget() {
  const std::scoped_lock lock(mutex_);
  cause_.clear();
  logged_cause_.clear();
  failures_ = 0;
  unlogged_ = 0;
  pause_ms_ = 0;
}

int64_t LinkFailures::pause_ms() const {
  const std::scoped_lock lock(mutex_);
  return pause_ms_;
}

std::string LinkFailures::cause() const {
  const std::scoped_lock lock(mutex_);
  return cause_;
}

bool LinkFailures::is_repeating() const {
  const std::scoped_lock lock(mutex_);
  return failures_ > 1;
}

}  // namespace server
