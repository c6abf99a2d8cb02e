// SPDX-License-Identifier: MIT
//
// Implements the waiting states of Connection: the end of a pause, a blocked command, a slow
// reader, and the next command of an idle client.
#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "server/base/log/log.h"
#include "server/base/process/server_state.h"
#include "server/dispatch/pause_gate.h"
#include "server/net/connection.h"
#include "server/session/awaited_reply.h"
#include "server/session/cluster_waits.h"

namespace server::net {
namespace {

// While unsent replies make a client wait, or its connection is closing, this is the longest time
// without progress. A client that reads no replies for longer is closed.
constexpr std::chrono::milliseconds kStalledMax{60'000};

}  // namespace

void Connection::wake() {
  if (const std::string news = end_foreign_channels(services_.pubsub, services_.cluster, *session_);
      !news.empty()) {
    output_.keep(news);
    send_unsent();
  }
  if (session_->kill_requested.load(std::memory_order_acquire) ||
      !runner_.dispatcher().keeps_rights()) {
    close();
  } else if (is_in(State::kPaused)) {
    timer_.cancel();
    on_timer();
  } else {
    poll();
  }
}

void Connection::on_tick(int64_t now_us, int64_t timeout_us, bool restarts_peak) {
  const int64_t last_us = session_->last_interaction_us.load(std::memory_order_relaxed);
  if (timeout_us > 0 && now_us - last_us > timeout_us && is_in(State::kReading) &&
      session_->peer == Peer::kClient && !session_->subscriptions.any()) {
    log_verbose("Closing idle client {}", session_->address);
    close();
  }
  close_if_over_output_limit();
  constexpr int64_t kIdleUs = 2 * core::kSecondUs;
  const bool is_idle = session_->authenticated && now_us - last_us > kIdleUs;
  const bool has_shrunk = is_idle && input_.give_back_free();
  if (restarts_peak) output_.restart_peak();
  if (has_shrunk || restarts_peak) publish_buffer_sizes();
}

void Connection::await_end_of_pause() {
  session_->wait = ClientWait::kPaused;
  update_interest();
  publish_buffer_sizes();
  // Limit on the wait for the end of a pause, so that a jump of the wall clock does not block
  // clients forever.
  constexpr int64_t kWaitMaxMs = 1000;
  // A hold on writes has no end time. PauseGate wakes the connection when the hold ends.
  const bool has_no_end = services_.pause.holds_writes() || awaits_cluster(services_.cluster);
  const int64_t left_ms =
      has_no_end ? kWaitMaxMs : services_.pause.end_ms() - services_.clock.wall_ms();
  arm_timer(std::chrono::milliseconds(std::clamp<int64_t>(left_ms, 1, kWaitMaxMs)));
}

void Connection::await_reply() {
  if (awaited_->can_be_unblocked()) {
    session_->wait = ClientWait::kUnblockable;
  } else if (awaited_->is_shown()) {
    session_->wait = ClientWait::kBlocked;
  }
  update_interest();
  thread_.connections.set_blocked(session_->id, true);
  thread_.blocked_waker.arm();
  // An acknowledgement may have arrived after the command checked for it, and syncs of disks send
  // no notification. So the connection polls at this interval.
  constexpr int64_t kLookUs = 10'000;
  const int64_t deadline_us = awaited_->deadline_us();
  const int64_t left_us = deadline_us == 0 ? kLookUs : deadline_us - services_.clock.monotonic_us();
  arm_timer(std::chrono::milliseconds((std::clamp<int64_t>(left_us, 0, kLookUs) + 999) / 1000));
}

void Connection::poll() {
  if (!is_in(State::kBlocked)) return;
  AwaitedReply& awaited = *awaited_;
  const Unblock unblock = session_->unblock_requested.exchange(Unblock::kNo);
  const int64_t deadline_us = awaited.deadline_us();
  const bool is_late = unblock == Unblock::kAsByTimeout ||
                       (deadline_us != 0 && services_.clock.monotonic_us() >= deadline_us);
  const size_t reply_begin = thread_.gate.replies().size();
  protocol::ReplyWriter reply(thread_.gate.replies(), session_->resp);
  if (unblock == Unblock::kWithError) {
    reply.error(kUnblocked);
  } else if (!awaited.try_answer(reply, is_late)) {
    return await_reply();
  }
  if (awaited.has_written()) thread_.gate.record_write(reply_begin);
  if (awaited.is_silent) thread_.gate.drop_fresh();
  timer_.cancel();
  session_->wait = ClientWait::kNone;
  thread_.connections.set_blocked(session_->id, false);
  awaited_.reset();
  state_ = State::kRunning;
  update_interest();
  proceed({});
}

void Connection::await_reader(State state) {
  state_ = state;
  update_interest();
  publish_buffer_sizes();
  (void)output_.has_moved();
  arm_timer(kStalledMax);
}

void Connection::arm_timer(std::chrono::milliseconds delay) {
  timer_.expires_after(delay);
  timer_.async_wait([weak = weak_from_this(), this](const ErrorCode& error) {
    const auto self = weak.lock();
    // If the timer is set again while a handler is already due, that handler still runs, and must
    // do nothing.
    if (error || !self || timer_.expiry() > Timer::clock_type::now()) return;
    on_timer();
  });
}

void Connection::on_timer() {
  if (output_.is_held()) return;
  switch (state_) {
    case State::kPaused:
      session_->wait = ClientWait::kNone;
      state_ = State::kRunning;
      update_interest();
      return proceed({});
    case State::kBlocked:
      return poll();
    case State::kSlowReader:
    case State::kClosing:
      if (output_.has_moved()) return arm_timer(kStalledMax);
      log_warning("Closing client {} that does not read its replies", session_->address);
      return close();
    case State::kReading:
    case State::kRunning:
    case State::kClosed:
      return;
  }
}

}  // namespace server::net
