// SPDX-License-Identifier: MIT
#include "server/session/pubsub/monitor_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "server/base/config/words.h"

namespace server {

MonitorFeed::MonitorFeed(size_t thread_count, Waker waker)
    : waker_(std::move(waker)), inboxes_(thread_count) {}

void MonitorFeed::add(uint64_t session_id, size_t thread_index) {
  const std::scoped_lock lock(mutex_);
  Inbox& inbox = inboxes_[thread_index];
  inbox.monitors.push_back({session_id, inbox.taken_bytes + inbox.lines.size()});
  count_.fetch_add(1, std::memory_order_relaxed);
}

void MonitorFeed::remove(uint64_t session_id) {
  const std::scoped_lock lock(mutex_);
  for (Inbox& inbox : inboxes_) {
    const size_t removed = std::erase_if(inbox.monitors, [session_id](const Monitor& monitor) {
      return monitor.session_id == session_id;
    });
    count_.fetch_sub(removed, std::memory_order_relaxed);
  }
}

void MonitorFeed::feed(std::string_view line) {
  std::vector<size_t> sleeping;
  {
    const std::scoped_lock lock(mutex_);
    for (size_t i = 0; i < inboxes_.size(); ++i) {
      Inbox& inbox = inboxes_[i];
      if (inbox.monitors.empty() || inbox.has_overflowed) continue;
      if (inbox.lines.empty()) sleeping.push_back(i);
      if (inbox.lines.size() + line.size() > kInboxBytesMax) {
        inbox.has_overflowed = true;
      } else {
        inbox.lines += line;
      }
    }
  }
  for (const size_t i : sleeping) waker_(i);
}

MonitorFeed::Batch MonitorFeed::take(size_t thread_index) {
  Batch batch;
  const std::scoped_lock lock(mutex_);
  Inbox& inbox = inboxes_[thread_index];
  for (const Monitor& monitor : inbox.monitors) {
    const uint64_t since = std::max(monitor.since, inbox.taken_bytes);
    batch.receivers.push_back({monitor.session_id, since - inbox.taken_bytes});
  }
  inbox.taken_bytes += inbox.lines.size();
  batch.lines = std::exchange(inbox.lines, std::string());
  batch.has_overflowed = std::exchange(inbox.has_overflowed, false);
  return batch;
}

std::string monitor_line(int64_t now_us, unsigned database, std::string_view client,
                         const std::vector<std::string_view>& words) {
  std::string line = fmt::format("+{}.{:06} [{} {}]", now_us / core::kSecondUs,
                                 now_us % core::kSecondUs, database, client);
  for (const std::string_view word : words) {
    line += ' ';
    append_quoted(line, word);
  }
  line += "\r\n";
  return line;
}

}  // namespace server
