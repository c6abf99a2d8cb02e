// SPDX-License-Identifier: MIT
#include "server/net/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "core/clock.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/log/log_rate.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/memory_monitor.h"
#include "server/base/process/server_state.h"
#include "server/base/transport/tls_stream.h"
#include "server/commands/replication/wait_commands.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/environment.h"
#include "server/dispatch/pause_gate.h"
#include "server/session/awaited_reply.h"
#include "server/session/clients.h"
#include "server/session/cluster_waits.h"
#include "server/session/invalidation_news.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/session_user.h"

namespace server::net {
namespace {

// While a client's unsent replies exceed this limit, its further commands wait.
constexpr size_t kUnsentBytesMax = 32 << 20;

std::shared_ptr<Stream> stream_of(const Client& client) {
  if (client.socket.tls != nullptr) return client.socket.tls;
  return std::make_shared<SocketStream>(client.socket.descriptor);
}

void log_failed_handshake(const Client& client, int64_t now_us) {
  constexpr int64_t kIntervalUs = 10 * core::kSecondUs;
  static LogRate rate(kIntervalUs);
  const auto& tls = client.socket.tls;
  if (tls == nullptr || tls->phase() != TlsStream::Phase::kHandshake) return;
  const auto left_out = rate.pass(now_us);
  if (!left_out) return;
  log_notice("Error accepting a client connection: {} (addr={} laddr={}){}", tls->failure(),
             client.address, client.local_address,
             *left_out == 0 ? "" : fmt::format("; {} more since the last such line", *left_out));
}

// A connection in the state kSlowReader or kClosing waits until the client reads replies. If it
// could not send any byte for this time, the connection is closed.
constexpr std::chrono::milliseconds kStalledMax{60'000};

// Evicts keys if `input_bytes` of further input would make used memory exceed maxmemory.
void make_room(const Services& services, size_t input_bytes) {
  Admission(services.config, services.memory, CommandOrigin::kClient)
      .make_room_for_input(input_bytes);
}

}  // namespace

Connection::Connection(IoThread& thread, Services& services, std::unique_ptr<Session> session)
    : thread_(thread),
      services_(services),
      session_(std::move(session)),
      client_(*session_->client),
      counters_(services.statistics.thread(thread.index)),
      stream_(stream_of(client_)),
      output_(*stream_, counters_),
      runner_(services, counters_, *session_),
      timer_(thread.context) {}

Connection::~Connection() {
  runner_.dispatcher().end_session();
  services_.clients.remove(client_.id);
}

void Connection::start() {
  if (!thread_.sockets.add(client_.socket.descriptor, *this, interest_)) {
    log_warning("Cannot wait for client {}", client_.address);
    return close();
  }
  wake();  // CLIENT KILL may have been executed before the connection started
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  thread_.sockets.remove(client_.socket.descriptor, *this);
  stream_->close();
  timer_.cancel();
  thread_.connections.forget(client_.id);
  // The connection object exists until the iteration of the event loop ends, but its buffers are
  // freed now.
  output_.forget();
  client_.output_buffer_bytes = 0;
  client_.output_buffer_capacity_bytes = 0;
  services_.clients.count_memory(client_);
}

void Connection::on_ready(uint32_t events) {
  if ((events & EPOLLOUT) != 0) send_unsent(true);
  if (state_ == State::kClosed || (events & ~uint32_t{EPOLLOUT}) == 0) return;
  if (is_in(State::kReading)) {
    // An evicted client must not allocate memory for another command before its thread closes it.
    return is_killed() ? close() : receive();
  }
  // A broken connection is closed even while the server does not read from it.
  const uint32_t ends = EPOLLHUP | EPOLLERR | (is_in(State::kBlocked) ? EPOLLRDHUP : 0U);
  if ((events & ends) != 0) return close();
  // A wait for the append log is short, so EPOLLIN is disabled only when input arrives during the
  // wait.
  update_interest();
}

ClientInput::Room Connection::room() {
  const bool is_authenticated = session_->authenticated;
  const size_t awaited_bytes = is_authenticated && input_.is_kept() ? input_.awaited_bytes() : 0;
  if (awaited_bytes < ClientInput::kReadBytes) return input_.room(is_authenticated);
  // A big argument gets its memory now, so keys are evicted first.
  const MemoryMonitor::Reservation reservation(services_.memory, awaited_bytes);
  make_room(services_, awaited_bytes);
  return input_.room(is_authenticated);
}

void Connection::receive() {
  using Status = Stream::Status;
  auto& buffer = thread_.read_buffer;
  const auto [place, size_max] = room();
  const auto [status, size, holds_bytes] = stream_->receive(place, buffer, size_max);
  if (holds_bytes) [[unlikely]] {
    output_.record_held_by_stream(true);
    update_interest();
  }
  switch (status) {
    case Status::kDone:
      client_.last_interaction_us = services_.clock.monotonic_us();
      counters_.input_bytes.add(size);
      client_.traffic.received_bytes += size;
      counters_.reads_processed.add();
      if (place.empty()) return proceed({buffer.data(), size});
      input_.commit(std::min(size, place.size()));
      return proceed({buffer.data(), size - std::min(size, place.size())});
    case Status::kLater:
      return;
    case Status::kEnd:
      // The client still gets its pending replies before the connection closes, although it will
      // send nothing more.
      state_ = State::kClosing;
      settle();
      return;
    case Status::kBroken:
      log_failed_handshake(client_, services_.clock.monotonic_us());
      return close();
  }
}

void Connection::proceed(std::string_view fresh) {
  do {
    const State next = execute(fresh);
    fresh = std::string_view{};
    if (state_ == State::kClosed) return thread_.gate.drop_fresh();
    state_ = next;
    thread_.gate.add(*this);
    // Usually the client's replies are sent with those of other clients, at the end of the event
    // loop's iteration.
    if (state_ == State::kReading) return publish_buffer_sizes();
    thread_.gate.flush();
  } while (!output_.is_held() && settle());
}

bool Connection::settle() {
  switch (state_) {
    case State::kRunning:
      if (output_.size() <= kUnsentBytesMax) return true;
      await_reader(State::kSlowReader);
      break;
    case State::kPaused:
      await_end_of_pause();
      break;
    case State::kBlocked:
      await_reply();
      break;
    case State::kClosing:
      input_.forget();
      if (output_.empty()) {
        close();
      } else {
        await_reader(State::kClosing);
      }
      break;
    case State::kReading:
    case State::kSlowReader:
    case State::kClosed:
      break;
  }
  return false;
}

Connection::State Connection::state_after(RequestRunner::End end) {
  switch (end) {
    case RequestRunner::End::kNeedsInput:
      return State::kReading;
    case RequestRunner::End::kManyReplies:
      return State::kRunning;
    case RequestRunner::End::kHeldBack:
      return State::kPaused;
    case RequestRunner::End::kBlocked:
      return State::kBlocked;
    case RequestRunner::End::kClosesClient:
    case RequestRunner::End::kOverOutputLimit:
      break;
  }
  return State::kClosing;
}

Connection::State Connection::execute(std::string_view fresh) {
  if (output_.empty()) runner_.record_all_sent();
  const std::string_view data = input_.join(fresh);
  publish_running_input(data.size() + input_.whole_argument_bytes());
  if (input_.is_kept()) {
    limit_memory();
    if (is_killed()) return State::kClosing;
  }
  auto [end, consumed, pending] =
      runner_.run(data, *thread_.batch, thread_.gate, reply_bytes_limit(), input_.big_argument());
  pending_ = std::move(pending);
  // A command that had to wait also ends the idle time, so that `timeout` does not close its
  // client.
  if (fresh.empty() && consumed > 0) {
    client_.last_interaction_us = services_.clock.monotonic_us();
  }
  if (session_->has_new_write) record_writes(services_, *session_);
  if (end == RequestRunner::End::kOverOutputLimit) [[unlikely]]
    close_over_output_limit();
  const protocol::RequestParser::Partial partial = runner_.partial();
  // Storing the start of a big argument allocates memory for the whole argument, so keys are
  // evicted first.
  const bool is_big = partial.needed_bytes >= ClientInput::kReadBytes;
  const bool allocates = is_big && !input_.is_kept() && session_->authenticated;
  // Above this size memory is allocated only for bytes that have arrived.
  const bool is_announced_whole = partial.needed_bytes <= BigArgument::kAtOnceBytesMax;
  const size_t stored_bytes = is_announced_whole ? partial.needed_bytes : data.size() - consumed;
  const size_t new_bytes = allocates ? stored_bytes : 0;
  const MemoryMonitor::Reservation reservation(services_.memory, new_bytes);
  if (allocates) make_room(services_, new_bytes);
  input_.keep(data.substr(consumed), session_->authenticated,
              {.end = partial.needed_bytes, .body_offset = partial.parsed_bytes});
  check_input();
  return state_after(end);
}

void Connection::check_input() {
  if (state_ == State::kClosed) return;
  if (!session_->authenticated) {
    if (input_.size() < ClientInput::kUnknownBytesMax) return;
    log_verbose("Closing client {} that sends too much before AUTH", client_.address);
  } else if (input_.size() >
             static_cast<uint64_t>(services_.config.integer(OptionId::kClientQueryBufferLimit))) {
    log_warning("Closing client {} that reached the query buffer limit", client_.address);
  } else {
    return;
  }
  counters_.query_buffer_disconnections.add();
  close();
}

void Connection::limit_memory() {
  if (state_ == State::kClosed) return;
  // As in Redis, clients are evicted before keys.
  services_.clients.count_memory(client_);
  const uint64_t limit_bytes = services_.config.client_memory_limit_bytes();
  const bool are_some_evicted = limit_bytes != 0 && services_.clients.keep_below(limit_bytes);
  if (are_some_evicted) [[unlikely]] {
    // Evicted clients are closed at once. Otherwise their memory would stay allocated while the
    // next client allocates more.
    thread_.connections.for_each([](Connection& one) {
      if (one.is_killed()) one.close();
    });
  }
  if (is_killed()) return;
  // Keys are evicted now, because a command that arrives in pieces allocates memory before it can
  // be rejected.
  const size_t awaited_bytes = input_.awaited_bytes();
  if (input_.size() + awaited_bytes >= ClientInput::kReadBytes) make_room(services_, awaited_bytes);
}

void Connection::send(std::string_view replies, protocol::OutputBuffer* whole) {
  if (state_ == State::kClosed) return;
  if (!output_.send(replies, whole)) return close();
  check_output();
}

size_t Connection::add_message(const Delivery& delivery, uint64_t serial) {
  if (state_ == State::kClosed || state_ == State::kClosing) return 0;
  if (is_killed()) return 0;
  if (delivery.message == nullptr) {
    // Invalidations that another client redirects to this session must not enter a replication
    // stream.
    if (client_.peer == Peer::kReplica) return 0;
    const std::string news =
        invalidation_news(services_.pubsub, services_.clients, *session_, delivery);
    output_.keep(news);
    return news.size();
  }
  const Message& message = *delivery.message;
  if (!session_->subscriptions.contains(message.kind, message.name, serial)) return 0;
  output_.keep(client_.resp == protocol::RespVersion::kResp3 ? ">" : "*");
  output_.keep(message.head);
  output_.keep(*message.payload);
  return message.size_bytes();
}

void Connection::add_monitored(std::string_view lines, bool are_some_lost) {
  const bool is_open = state_ != State::kClosed && state_ != State::kClosing;
  if (!is_open || client_.peer != Peer::kMonitor) return;
  if (are_some_lost) {
    log_warning("Closing monitor {}: lines come faster than they are sent", client_.address);
    counters_.output_buffer_disconnections.add();
    return close();
  }
  output_.keep(lines);
  send_unsent();
}

void Connection::hold(std::string_view replies, std::span<const ReplySpan> writes,
                      protocol::OutputBuffer* whole) {
  if (state_ != State::kClosed) output_.hold(replies, writes, whole);
}

void Connection::release(std::string_view error) {
  if (state_ == State::kClosed) return;
  for (size_t left = output_.release(error, client_.resp); left > 0; --left) {
    services_.statistics.count_error(error.substr(0, error.find(' ')));
  }
  send_unsent();
  if (settle()) proceed({});
}

void Connection::send_unsent(bool is_ready) {
  if (state_ == State::kClosed || output_.empty()) return;
  if (!output_.flush(is_ready)) return close();
  if (output_.empty() && is_in(State::kClosing)) return close();
  if (state_ == State::kSlowReader && output_.size() <= kUnsentBytesMax / 2) {
    state_ = State::kRunning;
    timer_.cancel();
    proceed({});
  }
  check_output();
}

void Connection::check_output() {
  close_if_over_output_limit();
  if (state_ == State::kReading && output_.size() > kUnsentBytesMax)
    await_reader(State::kSlowReader);
  if (state_ == State::kClosed) return;
  update_interest();
  publish_buffer_sizes();
}

BufferLimit Connection::output_limit() const {
  const ClientTracking* const tracking = session_->subscriptions.tracking();
  // Clients that receive pushes use the pubsub limit.
  const bool is_listener = session_->subscriptions.any() || client_.peer == Peer::kMonitor ||
                           (tracking != nullptr && tracking->is_broadcast);
  return services_.config.output_buffer_limit(is_listener ? ClientClass::kPubSub
                                                          : ClientClass::kNormal);
}

size_t Connection::reply_bytes_limit() const {
  const int64_t hard_bytes = output_limit().hard_bytes;
  if (hard_bytes <= 0) return RequestRunner::kNoLimit;
  return static_cast<size_t>(hard_bytes) -
         std::min(output_.size(), static_cast<size_t>(hard_bytes));
}

void Connection::close_if_over_output_limit() {
  if (state_ == State::kClosed || output_.empty()) return;
  if (output_.is_over(output_limit(), services_.clock.monotonic_us())) close_over_output_limit();
}

void Connection::close_over_output_limit() {
  log_warning("Closing client {} that reached its output buffer limit", client_.address);
  counters_.output_buffer_disconnections.add();
  close();
}

void Connection::update_interest() {
  uint32_t interest = 0;
  if (is_in(State::kReading) || is_in(State::kRunning)) interest |= EPOLLIN;
  // A blocked command may wait for long. EPOLLRDHUP reports a client that disconnects in the
  // meantime, so that its connection is closed.
  if (is_in(State::kBlocked)) interest |= EPOLLRDHUP;
  if (output_.wants_to_send()) interest |= EPOLLOUT;
  if (interest == interest_) return;
  interest_ = interest;
  thread_.sockets.change(client_.socket.descriptor, *this, interest);
}

void Connection::publish_running_input(size_t size_bytes) {
  constexpr size_t kBorrowed = ClientInput::kReadBytes;
  client_.query_buffer_bytes = size_bytes;
  client_.query_buffer_free_bytes =
      input_.is_kept() ? input_.free_bytes() : kBorrowed - std::min(kBorrowed, size_bytes);
  client_.parsed_bytes = 0;
  client_.argument_bytes = 0;
  client_.borrows_query_buffer = !input_.is_kept();
}

void Connection::publish_buffer_sizes() {
  const protocol::RequestParser::Partial partial = runner_.partial();
  // A big argument is received in separate memory. The parser moves past the argument's start only
  // once it has parsed the whole argument and the line end that follows.
  const BigArgument* const big = input_.big_argument();
  const size_t apart_bytes =
      big != nullptr && partial.parsed_bytes > big->offset() ? input_.whole_argument_bytes() : 0;
  const size_t parsed_bytes = std::min(partial.parsed_bytes + apart_bytes, input_.size());
  client_.query_buffer_bytes = input_.size() - parsed_bytes;
  client_.query_buffer_free_bytes = input_.free_bytes();
  client_.parsed_bytes = parsed_bytes;
  client_.argument_bytes = partial.argument_bytes;
  client_.borrows_query_buffer = false;
  client_.output_buffer_bytes = output_.size();
  client_.output_buffer_capacity_bytes = output_.capacity();
  client_.output_buffer_peak_bytes = output_.peak();
  client_.traffic.sent_bytes = output_.sent_bytes();
  limit_memory();
}

void Connection::wake() {
  if (const std::string news = end_foreign_channels(services_.pubsub, services_.cluster, *session_);
      !news.empty()) {
    output_.keep(news);
    send_unsent();
  }
  if (client_.kill_requested.load(std::memory_order_acquire) ||
      !refresh_user(*session_, services_.users)) {
    close();
  } else if (is_in(State::kPaused)) {
    timer_.cancel();
    on_timer();
  } else {
    poll();
  }
}

void Connection::on_tick(int64_t now_us, int64_t timeout_us, bool restarts_peak) {
  const int64_t last_us = client_.last_interaction_us;
  if (timeout_us > 0 && now_us - last_us > timeout_us && is_in(State::kReading) &&
      client_.peer == Peer::kClient && !session_->subscriptions.any()) {
    log_verbose("Closing idle client {}", client_.address);
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
  client_.wait = ClientWait::kPaused;
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
  if (pending_.reply->can_be_unblocked()) {
    client_.wait = ClientWait::kUnblockable;
    Unblock state = Unblock::kForbidden;  // only when the wait begins
    client_.unblock.compare_exchange_strong(state, Unblock::kAllowed);
  } else if (pending_.reply->is_shown()) {
    client_.wait = ClientWait::kBlocked;
  }
  update_interest();
  thread_.connections.set_blocked(client_.id, true);
  thread_.blocked_waker.arm();
  // The connection polls at this interval for two reasons. An acknowledgement may have arrived
  // after the command counted the acknowledgements, and no notification follows a sync to disk.
  constexpr int64_t kLookUs = 10'000;
  const int64_t deadline_us = pending_.reply->deadline_us();
  const int64_t left_us = deadline_us == 0 ? kLookUs : deadline_us - services_.clock.monotonic_us();
  arm_timer(std::chrono::milliseconds((std::clamp<int64_t>(left_us, 0, kLookUs) + 999) / 1000));
}

void Connection::poll() {
  if (!is_in(State::kBlocked)) return;
  AwaitedReply& awaited = *pending_.reply;
  const Unblock unblock = client_.unblock;
  const int64_t deadline_us = awaited.deadline_us();
  const bool is_late = unblock == Unblock::kAsByTimeout ||
                       (deadline_us != 0 && services_.clock.monotonic_us() >= deadline_us);
  const size_t reply_begin = thread_.gate.replies().size();
  protocol::ReplyWriter reply(thread_.gate.replies(), client_.resp);
  if (unblock == Unblock::kWithError) {
    reply.error(kUnblocked);
  } else if (!awaited.try_answer(reply, is_late)) {
    return await_reply();
  }
  const protocol::OutputBuffer& replies = thread_.gate.replies();
  if (!replies.has_overflowed()) {
    services_.statistics.count_if_error(counters_.commands[pending_.command_index],
                                        replies.view().substr(reply_begin));
  }
  if (awaited.has_written()) {
    thread_.gate.record_write(reply_begin);
    record_writes(services_, *session_);
  }
  if (pending_.is_silent) thread_.gate.drop_fresh();
  timer_.cancel();
  client_.wait = ClientWait::kNone;
  client_.last_interaction_us = services_.clock.monotonic_us();
  client_.unblock = Unblock::kForbidden;
  thread_.connections.set_blocked(client_.id, false);
  pending_ = PendingReply{};
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
      client_.wait = ClientWait::kNone;
      state_ = State::kRunning;
      update_interest();
      return proceed({});
    case State::kBlocked:
      return poll();
    case State::kSlowReader:
    case State::kClosing:
      if (output_.has_moved()) return arm_timer(kStalledMax);
      log_warning("Closing client {} that does not read its replies", client_.address);
      return close();
    case State::kReading:
    case State::kRunning:
    case State::kClosed:
      return;
  }
}

}  // namespace server::net
