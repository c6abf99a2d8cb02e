// SPDX-License-Identifier: MIT
#include "server/session/acl/access_log.h"

#include <algorithm>
#include <utility>

namespace server::acl {
namespace {

// As in Redis, only the newest entries are searched for an earlier occurrence of the same event.
constexpr size_t kComparedEntriesMax = 10;
constexpr int64_t kSameEventMs = 60'000;

bool is_same_event(const Denied& a, const Denied& b) {
  return a.reason == b.reason && a.in_transaction == b.in_transaction && a.object == b.object &&
         a.user == b.user;
}

}  // namespace

// As in Redis, lowering the limit does not delete entries immediately. The excess entries are
// deleted when the next entry is added.
void AccessLog::set_limit(size_t limit) {
  const std::scoped_lock lock(mutex_);
  limit_ = limit;
}

void AccessLog::add(Denied denied, int64_t now_ms) {
  counts_[static_cast<size_t>(denied.reason)].fetch_add(1, std::memory_order_relaxed);
  const std::scoped_lock lock(mutex_);
  Entry fresh{std::move(denied), next_id_, 1, now_ms, now_ms};
  const size_t compared = std::min(entries_.size(), kComparedEntriesMax);
  const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(compared);
  const auto same = std::find_if(entries_.begin(), end, [&](const Entry& entry) {
    return is_same_event(entry.denied, fresh.denied) && now_ms - entry.last_ms <= kSameEventMs;
  });
  if (same != end) {
    fresh.id = same->id;
    fresh.count = same->count + 1;
    fresh.first_ms = same->first_ms;
    entries_.erase(same);
    entries_.push_front(std::move(fresh));
    return;
  }
  ++next_id_;
  entries_.push_front(std::move(fresh));
  if (entries_.size() > limit_) entries_.resize(limit_);
}

std::vector<AccessLog::Entry> AccessLog::newest(size_t count) const {
  const std::scoped_lock lock(mutex_);
  const size_t taken = std::min(count, entries_.size());
  return {entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(taken)};
}

void AccessLog::clear() {
  const std::scoped_lock lock(mutex_);
  entries_.clear();
}

std::string_view reason_name(Reason reason) {
  constexpr std::array<std::string_view, 5> kNames = {"", "command", "key", "auth", "channel"};
  return kNames[static_cast<size_t>(reason)];
}

}  // namespace server::acl
