// SPDX-License-Identifier: MIT
//
// The part of Connection that waits: for the end of a pause, for replicas, for a slow reader.
#include <algorithm>

#include "core/clock.h"
#include "server/dispatch/pause_gate.h"
#include "server/net/connection.h"
#include "server/process/log.h"
#include "server/session/awaited_reply.h"

namespace server::net {

void Connection::wait_for(Wait wait) {
  if (wait == Wait::kLastReplies && unsent_.empty()) return close();
  wait_ = wait;
  update_interest();
  publish_buffer_sizes();
  if (wait == Wait::kEndOfPause) {
    session_->paused.store(true);
    // A bound keeps a wall clock that jumps from holding clients for ever.
    constexpr int64_t kWaitMaxMs = 1000;
    // Nobody knows when a hold ends; then the gate wakes.
    const int64_t left_ms = services_.pause.holds_writes()
                                ? kWaitMaxMs
                                : services_.pause.end_ms() - services_.clock.wall_ms();
    return arm_timer(std::chrono::milliseconds(std::clamp<int64_t>(left_ms, 1, kWaitMaxMs)));
  }
  arm_timer(kStalledMax);
}

void Connection::wait_for_acks() {
  wait_ = Wait::kAcks;
  session_->blocked = session_->awaited->can_be_unblocked();
  update_interest();
  thread_.awaiting_acks.insert(session_->id);
  thread_.is_awaiting_acks = true;
  // An acknowledgement may have come since the command looked; disks tell nobody.
  constexpr int64_t kLookUs = 10'000;
  const int64_t deadline_us = session_->awaited->deadline_us();
  const int64_t left_us = deadline_us == 0 ? kLookUs : deadline_us - services_.clock.monotonic_us();
  arm_timer(std::chrono::milliseconds((std::clamp<int64_t>(left_us, 0, kLookUs) + 999) / 1000));
}

void Connection::check_acks() {
  if (!open_ || wait_ != Wait::kAcks) return;
  AwaitedReply& awaited = *session_->awaited;
  const Unblock unblock = session_->unblock_requested.exchange(Unblock::kNo);
  const int64_t deadline_us = awaited.deadline_us();
  const bool is_late = unblock == Unblock::kAsByTimeout ||
                       (deadline_us != 0 && services_.clock.monotonic_us() >= deadline_us);
  reply_mark_ = thread_.replies.size();
  protocol::ReplyWriter reply(thread_.replies, session_->resp);
  if (unblock == Unblock::kWithError) {
    reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
  } else if (!awaited.try_answer(reply, is_late)) {
    return wait_for_acks();
  }
  if (awaited.is_silent) thread_.replies.truncate(reply_mark_);
  timer_.cancel();
  session_->blocked = false;
  thread_.awaiting_acks.erase(session_->id);
  session_->awaited.reset();
  wait_ = Wait::kNothing;
  stop_ = Stop::kOutputFull;  // there may be more to execute
  update_interest();
  if (settle()) proceed({});
}

void Connection::arm_timer(std::chrono::milliseconds delay) {
  took_bytes_ = false;
  timer_.expires_after(delay);
  timer_.async_wait([weak = weak_from_this()](const ErrorCode& error) {
    if (error) return;  // cancelled
    if (const auto self = weak.lock()) self->on_timer();
  });
}

void Connection::on_timer() {
  if (!open_ || wait_ == Wait::kNothing) return;
  thread_.send_owed();  // what this client is owed precedes what it gets now
  if (wait_ == Wait::kEndOfPause) {
    wait_ = Wait::kNothing;
    session_->paused.store(false);
    update_interest();
    return proceed({});
  }
  if (wait_ == Wait::kAcks) return check_acks();
  if (!took_bytes_) {
    log_warning("Closing client {} that does not read its replies", session_->address);
    return close();
  }
  arm_timer(kStalledMax);
}

}  // namespace server::net
