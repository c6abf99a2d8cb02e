// SPDX-License-Identifier: MIT
#include "server/replication/replica/link_failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/clock.h"

namespace server {
namespace {

struct Pauses {
  int64_t first_ms;
  int64_t longest_ms;
  // If a link has made progress for at least this time, it counts as working.
  int64_t worked_us_min;
};

// The pauses depend on the cost of a failure. A failed snapshot costs the leader a child process.
// Rejected data will be rejected again until an administrator changes an option of this server, or
// a client changes the data.
Pauses pauses_after(LinkFailures::Kind kind) {
  using Kind = LinkFailures::Kind;
  if (kind == Kind::kUnusable) return {20, 10'000, 0};
  if (kind == Kind::kInVain) return {20, 10'000, 10 * core::kSecondUs};
  if (kind == Kind::kRefused) return {1000, 300'000, 300 * core::kSecondUs};
  return {20, 1000, 0};
}

constexpr int64_t kLogEveryUs = 60 * core::kSecondUs;
// Causes contain text from the leader, so their length is limited.
constexpr size_t kCauseBytesMax = 500;

}  // namespace

std::string LinkFailures::record_end(const core::Error& cause, Kind kind, int64_t now_us) {
  const std::scoped_lock lock(mutex_);
  cause_ = cause.message.substr(0, kCauseBytesMax);
  ++failures_;
  const Pauses pauses = pauses_after(kind);
  const bool has_worked = progress_us_ && now_us - *progress_us_ >= pauses.worked_us_min;
  progress_us_.reset();
  const bool is_first = has_worked || kind == Kind::kCut;
  pause_ms_ =
      is_first ? pauses.first_ms : std::clamp(pause_ms_ * 2, pauses.first_ms, pauses.longest_ms);
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
  if (kind == Kind::kRefused) {
    line += fmt::format(
        "; the next attempt comes in {} s, or at REPLICAOF{}", pause_ms_ / 1000,
        cause.code == core::ErrorCode::kUnsupported ? " or CONFIG SET rdb-foreign-types" : "");
  }
  logged_cause_ = cause_;
  logged_us_ = now_us;
  unlogged_ = 0;
  return line;
}

uint64_t LinkFailures::record_progress(int64_t now_us) {
  const std::scoped_lock lock(mutex_);
  cause_.clear();
  progress_us_ = now_us;
  return std::exchange(failures_, 0);
}

void LinkFailures::forget() {
  const std::scoped_lock lock(mutex_);
  cause_.clear();
  logged_cause_.clear();
  failures_ = 0;
  unlogged_ = 0;
  pause_ms_ = 0;
}

}  // namespace server
