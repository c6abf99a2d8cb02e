// SPDX-License-Identifier: MIT
#include "server/net/connection.h"

#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <algorithm>
#include <cerrno>
#include <exception>

#include "server/log.h"

namespace server::net {
namespace {

// What a coroutine that threw leaves behind: a log line; the connection is closed by its owner.
void log_failure(const std::exception_ptr& failure) {
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    log_error("Connection ended by an unexpected error: {}", error.what());
  }
}

protocol::Limits parser_limits(const Config& config) {
  protocol::Limits limits;
  limits.bulk_size_max_bytes = static_cast<size_t>(config.max_bulk_bytes());
  return limits;
}

}  // namespace

Connection::Connection(Socket socket, IoThread& thread, Services& services,
                       std::shared_ptr<Session> session)
    : socket_(std::move(socket)),
      thread_(thread),
      services_(services),
      session_(std::move(session)),
      dispatcher_(services, services.statistics.thread(thread.index), *session_),
      wake_timer_(thread.context) {
  parser_.set_limits(parser_limits(services_.config));
  parser_.set_authenticated(session_->authenticated);
  thread_.connections.emplace(session_->id, this);
}

Connection::~Connection() {
  thread_.connections.erase(session_->id);
  dispatcher_.end_session();
  services_.clients.remove(session_->id);
}

void Connection::start() {
  // The handler holds the connection: it outlives both coroutines.
  asio::co_spawn(thread_.context, run_reader(),
                 [self = shared_from_this()](const std::exception_ptr& failure) {
                   log_failure(failure);
                   self->close();
                 });
}

void Connection::close() {
  if (!open_) return;
  open_ = false;
  ErrorCode ignored;
  socket_.shutdown(Socket::shutdown_both, ignored);
  socket_.close(ignored);
  wake_timer_.cancel();
}

void Connection::wake() {
  if (session_->kill_requested.load(std::memory_order_acquire)) {
    close();
  } else {
    wake_timer_.cancel();
  }
}

void Connection::close_if_idle(int64_t now_ms, int64_t timeout_ms) {
  const int64_t last_ms = session_->last_interaction_ms.load(std::memory_order_relaxed);
  if (timeout_ms > 0 && now_ms - last_ms > timeout_ms && !session_->paused.load()) {
    log_verbose("Closing idle client {}", session_->address);
    close();
  }
}

Awaitable<> Connection::run_reader() {
  std::string_view fresh;
  wake();  // CLIENT KILL may have come before the connection had started
  while (open_) {
    const Stop stop = execute(fresh);
    fresh = {};
    send_replies();
    if (stop == Stop::kClose) {
      co_await wait_until_sent(0);
      break;
    }
    if (stop == Stop::kHeldBack) {
      co_await wait_while_held_back();
      continue;
    }
    if (unsent_.size() > kUnsentBytesMax) co_await wait_until_sent(kUnsentBytesMax / 2);
    if (stop == Stop::kOutputFull || !open_) continue;
    publish_buffer_sizes();
    const auto [error] = co_await socket_.async_wait(Socket::wait_read, kAsValue);
    if (error || !open_) break;
    fresh = read_available();
    if (end_of_input_) {
      // A client that has closed its writing side still gets the replies it waits for.
      co_await wait_until_sent(0);
      break;
    }
  }
}

std::string_view Connection::read_available() {
  auto& buffer = thread_.read_buffer;
  const ssize_t size = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), 0);
  if (size > 0) {
    auto& counters = services_.statistics.thread(thread_.index);
    counters.input_bytes.add(static_cast<uint64_t>(size));
    counters.reads_processed.add();
    return {buffer.data(), static_cast<size_t>(size)};
  }
  if (size == 0) {
    end_of_input_ = true;
  } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
    close();
  }
  return {};
}

Connection::Stop Connection::execute(std::string_view fresh) {
  size_t consumed = 0;
  if (input_.empty()) {
    // The usual case: whole commands, executed where they were read to.
    const Stop stop = execute_complete(fresh, consumed);
    input_.assign(fresh.substr(consumed));
    return stop;
  }
  input_.append(fresh);
  const Stop stop = execute_complete(input_, consumed);
  input_.erase(0, consumed);
  if (input_.empty() && input_.capacity() > IoThread::kReadBufferBytes) input_ = {};
  if (input_.size() > static_cast<uint64_t>(services_.config.query_buffer_limit_bytes())) {
    log_warning("Closing client {} that reached the query buffer limit", session_->address);
    services_.statistics.thread(thread_.index).query_buffer_disconnections.add();
    close();
    return Stop::kClose;
  }
  return stop;
}

Connection::Stop Connection::execute_complete(std::string_view data, size_t& consumed) {
  if (data.empty()) return Stop::kNeedInput;
  const int64_t now_ms = services_.clock.wall_ms();
  session_->last_interaction_ms.store(now_ms, std::memory_order_relaxed);
  protocol::OutputBuffer& replies = thread_.replies;
  while (true) {
    const auto status = parser_.parse(data.substr(consumed));
    if (status == protocol::RequestParser::Status::kNeedMore) {
      consumed += parser_.consumed();
      return Stop::kNeedInput;
    }
    if (status == protocol::RequestParser::Status::kError) {
      protocol::ReplyWriter(replies, session_->resp).error(parser_.error());
      consumed = data.size();
      return Stop::kClose;
    }
    const Outcome outcome = dispatcher_.execute(parser_.arguments(), now_ms, replies);
    if (outcome == Outcome::kHeldBack) return Stop::kHeldBack;
    consumed += parser_.consumed();
    if (outcome == Outcome::kClose) return Stop::kClose;
    if (session_->kill_requested.load(std::memory_order_relaxed)) {
      close();
      return Stop::kClose;
    }
    if (replies.size() >= kReplyBatchBytes) return Stop::kOutputFull;
  }
}

void Connection::send_replies() {
  parser_.set_authenticated(session_->authenticated);
  protocol::OutputBuffer& replies = thread_.replies;
  if (replies.empty()) return;
  size_t sent = 0;
  if (open_ && unsent_.empty()) {
    const ssize_t size =
        ::send(socket_.native_handle(), replies.data(), replies.size(), MSG_NOSIGNAL);
    if (size > 0) {
      sent = static_cast<size_t>(size);
      auto& counters = services_.statistics.thread(thread_.index);
      counters.output_bytes.add(sent);
      counters.writes_processed.add();
    } else if (size < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      close();
    }
  }
  if (open_ && sent < replies.size()) {
    unsent_.append({replies.data() + sent, replies.size() - sent});
    if (over_output_limit()) {
      close();
    } else if (!writing_) {
      writing_ = true;
      asio::co_spawn(thread_.context, run_writer(),
                     [self = shared_from_this()](const std::exception_ptr& failure) {
                       log_failure(failure);
                       self->writing_ = false;
                       self->wake_timer_.cancel();
                     });
    }
  }
  replies.clear();
  replies.shrink(kReplyBatchBytes);
}

bool Connection::over_output_limit() {
  const auto limit = static_cast<uint64_t>(
      services_.config.output_buffer_limit(ClientClass::kNormal).hard_bytes);
  if (limit == 0 || unsent_.size() <= limit) return false;
  log_warning("Closing client {} that reached its output buffer limit", session_->address);
  services_.statistics.thread(thread_.index).output_buffer_disconnections.add();
  return true;
}

Awaitable<> Connection::run_writer() {
  while (open_ && !unsent_.empty()) {
    const auto [error] = co_await socket_.async_wait(Socket::wait_write, kAsValue);
    if (error || !open_) break;
    const ssize_t size =
        ::send(socket_.native_handle(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (size > 0) {
      auto& counters = services_.statistics.thread(thread_.index);
      counters.output_bytes.add(static_cast<uint64_t>(size));
      counters.writes_processed.add();
      unsent_.consume(static_cast<size_t>(size));
      wake_timer_.cancel();
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      close();
    }
  }
  unsent_.clear();
  unsent_.shrink(0);
}

Awaitable<> Connection::wait_until_sent(size_t unsent_max) {
  while (open_ && unsent_.size() > unsent_max) {
    const size_t before = unsent_.size();
    wake_timer_.expires_after(kStalledMax);
    const auto [error] = co_await wake_timer_.async_wait(kAsValue);
    if (!error && unsent_.size() == before) {
      log_warning("Closing client {} that does not read its replies", session_->address);
      close();
    }
  }
}

Awaitable<> Connection::wait_while_held_back() {
  session_->paused.store(true);
  const int64_t wait_ms = services_.pause.end_ms() - services_.clock.wall_ms();
  // A bound keeps a wall clock that jumps from holding clients for ever.
  constexpr int64_t kWaitMaxMs = 1000;
  wake_timer_.expires_after(std::chrono::milliseconds(std::clamp<int64_t>(wait_ms, 1, kWaitMaxMs)));
  co_await wake_timer_.async_wait(kAsValue);
  session_->paused.store(false);
}

void Connection::publish_buffer_sizes() {
  session_->query_buffer_bytes.store(input_.size(), std::memory_order_relaxed);
  session_->query_buffer_free_bytes.store(input_.capacity() - input_.size(),
                                          std::memory_order_relaxed);
  session_->output_buffer_bytes.store(unsent_.size(), std::memory_order_relaxed);
}

}  // namespace server::net
