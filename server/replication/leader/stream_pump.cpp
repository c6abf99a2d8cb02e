// SPDX-License-Identifier: MIT
#include "server/replication/leader/stream_pump.h"

#include <poll.h>

#include <algorithm>

namespace server {
namespace {

constexpr size_t kPumpBytes = size_t{256} << 10;

}  // namespace

StreamPump::StreamPump(Backlog& backlog, const core::Clock& clock)
    : backlog_(backlog), clock_(clock), buffer_(kPumpBytes) {}

StreamPump::Outcome StreamPump::pump(const std::vector<Flow>& flows) {
  using Progress = ReplicaSender::Progress;
  Outcome outcome;
  blocked_.clear();
  has_more_ = false;
  for (const auto& [link, has_stream] : flows) {
    const uint64_t offset = link->offset;
    uint64_t sent = 0;
    const auto progress = link->pump(backlog_, has_stream, buffer_, sent);
    outcome.sent_bytes += sent;
    if (sent > 0) link->moved_us = clock_.monotonic_us();
    if (link->offset != offset && link->cursor) backlog_.advance(*link->cursor, link->offset);
    has_more_ |= progress == Progress::kMore || progress == Progress::kFileSent;
    if (progress == Progress::kBlocked) blocked_.push_back(link);
    if (progress == Progress::kFileSent) outcome.file_sent.push_back(link);
    if (progress == Progress::kGone) outcome.gone.push_back(link);
  }
  return outcome;
}

void StreamPump::wake() {
  if (is_asleep_.exchange(false)) waker_.wake();
}

void StreamPump::interrupt() {
  is_asleep_ = true;
  wake();
}

bool StreamPump::is_behind(const std::vector<Flow>& flows) const {
  const uint64_t end = backlog_.end_offset();
  return std::ranges::any_of(flows, [&](const Flow& flow) {
    return flow.has_stream && flow.link->offset < end &&
           std::ranges::find(blocked_, flow.link) == blocked_.end();
  });
}

void StreamPump::sleep(const std::vector<Flow>& flows, int timeout_ms,
                       const std::function<bool()>& is_wanted) {
  if (has_more_) return;
  // is_asleep_ is set before the checks for unsent bytes. So if another thread appends bytes after
  // the checks and calls wake(), this call ends the sleep.
  is_asleep_ = true;
  if (is_behind(flows) || is_wanted()) {
    is_asleep_ = false;
    return;
  }
  std::vector<pollfd> waited{{waker_.descriptor(), POLLIN, 0}};
  for (const LinkPtr& link : blocked_) waited.push_back({link->socket.get(), POLLOUT, 0});
  (void)::poll(waited.data(), waited.size(), timeout_ms);
  is_asleep_ = false;
  waker_.drain();
}

}  // namespace server
