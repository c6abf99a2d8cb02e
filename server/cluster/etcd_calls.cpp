// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_calls.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

namespace server::cluster {
namespace {

namespace asio = boost::asio;

constexpr size_t kIdleConnectionsMax = 4;
constexpr std::chrono::seconds kTokenLimit{10};

EtcdError unreachable(const EtcdEndpoint& endpoint, const core::Error& error) {
  return {EtcdCode::kUnavailable,
          fmt::format("{}: {}", endpoint.url(), core::without_code(error.message))};
}

}  // namespace

struct EtcdCalls::Running {
  Running(asio::io_context& io, Call asked) : call(std::move(asked)), limit(io) {}

  Call call;
  asio::steady_timer limit;
  Connection connection;
  size_t endpoint = 0;
  std::string token;             // what it was sent with
  bool sent = false;             // and no answer since that excludes it
  bool asked_new_token = false;  // once a call
  bool finished = false;
  EtcdError last_error{EtcdCode::kDeadlineExceeded, "no etcd member has answered in time"};
};

asio::awaitable<core::Result<EtcdHttpReply>> exchange(std::shared_ptr<EtcdConnection> connection,
                                                      std::string request) {
  const auto written = co_await connection->write(request);
  if (!written) co_return written.error();
  EtcdHttpReader reader(EtcdHttpReader::Kind::kReply);
  while (!reader.is_done()) {
    const auto bytes = co_await connection->read();
    if (!bytes) co_return bytes.error();
    const auto fed = bytes->empty() ? reader.feed_end() : reader.feed(*bytes);
    if (!fed) co_return fed.error();
  }
  EtcdHttpReply reply{reader.status(), reader.body(), reader.keeps_alive()};
  co_return reply;
}

bool wants_new_token(const EtcdError& error) {
  const auto says = [&](std::string_view text) {
    return error.code == EtcdCode::kInvalidArgument &&
           error.message.find(text) != std::string::npos;
  };
  return error.code == EtcdCode::kUnauthenticated || says("user name is empty") ||
         says("auth store is old");
}

EtcdCalls::EtcdCalls(asio::io_context& io, EtcdOptions options, std::vector<EtcdEndpoint> endpoints,
                     std::unique_ptr<asio::ssl::context> tls)
    : io_(io),
      options_(std::move(options)),
      endpoints_(std::move(endpoints)),
      tls_(std::move(tls)),
      token_asked_(io) {}

void EtcdCalls::start(Call call) {
  auto running = std::make_shared<Running>(io_, std::move(call));
  calls_.insert(running);
  running->limit.expires_after(options_.call_limit);
  const std::weak_ptr<EtcdCalls> weak = weak_from_this();
  running->limit.async_wait([weak, running](const boost::system::error_code& canceled) {
    const auto self = weak.lock();
    if (!canceled && self) self->on_limit(running);
  });
  // Posted: a failure that is known at once must not call the handler inside of this function.
  asio::post(io_, [self = shared_from_this(), running] {
    asio::co_spawn(self->io_, self->run(running), asio::detached);
  });
}

void EtcdCalls::stop() {
  stopped_ = true;
  if (authenticating_) authenticating_->close();
  on_move_ = nullptr;
  for (const RunningPointer& call : calls_) {
    call->finished = true;
    call->limit.cancel();
    if (call->connection) call->connection->close();
  }
  calls_.clear();
  for (const Connection& connection : idle_) connection->close();
  idle_.clear();
}

void EtcdCalls::on_limit(const RunningPointer& call) {
  if (call->finished) return;
  move_on(call->endpoint);
  const auto outcome = call->sent ? EtcdOutcome::kUnknown : EtcdOutcome::kRefused;
  EtcdError error = call->last_error;
  if (call->sent) {
    error = {EtcdCode::kDeadlineExceeded,
             fmt::format("{}: no answer within {} ms", endpoints_[call->endpoint].url(),
                         options_.call_limit.count())};
  }
  finish(call, {outcome, {}, std::move(error)});
}

void EtcdCalls::finish(const RunningPointer& call, EtcdAnswer answer) {
  if (call->finished) return;
  call->finished = true;
  call->limit.cancel();
  if (const Connection connection = std::exchange(call->connection, nullptr)) connection->close();
  calls_.erase(call);
  call->call.handler(std::move(answer));
}

void EtcdCalls::move_on(size_t failed) {
  if (stopped_ || failed != current_) return;
  current_ = (current_ + 1) % endpoints_.size();
  for (const Connection& connection : idle_) connection->close();
  idle_.clear();
  if (on_move_) on_move_();
}

void EtcdCalls::forget_token() {
  token_.clear();
  auth_is_off_ = false;
}

asio::awaitable<void> EtcdCalls::run(RunningPointer call) {
  const auto self = shared_from_this();  // the client may be destroyed meanwhile
  // Each endpoint once, and once more with a new token.
  for (size_t i = 0; i <= endpoints_.size() && !call->finished; ++i) {
    const bool done = co_await try_current(call);
    if (done) co_return;
    if (i + 1 >= endpoints_.size() && !call->asked_new_token) break;
  }
  const auto outcome = call->sent ? EtcdOutcome::kUnknown : EtcdOutcome::kRefused;
  finish(call, {outcome, {}, call->last_error});
}

asio::awaitable<bool> EtcdCalls::try_current(RunningPointer call) {
  const EtcdError unprepared = co_await prepare(call);
  if (call->finished) co_return true;
  if (unprepared.code != EtcdCode::kOk) co_return on_error(call, unprepared);

  call->sent = true;
  call->token = token_;
  const EtcdEndpoint& endpoint = endpoints_[call->endpoint];
  const Connection connection = call->connection;
  std::string request = etcd_request(endpoint, call->call.path, call->token, call->call.body);
  const auto reply = co_await exchange(connection, std::move(request));
  if (call->finished) co_return true;
  if (!reply) {
    move_on(call->endpoint);
    call->last_error = unreachable(endpoint, reply.error());
    connection->close();
    if (call->call.only_reads) co_return false;
    finish(call, {EtcdOutcome::kUnknown, {}, call->last_error});
    co_return true;
  }
  call->connection = nullptr;
  if (reply->keeps_alive && call->endpoint == current_ && idle_.size() < kIdleConnectionsMax) {
    idle_.push_back(connection);
  } else {
    connection->close();
  }
  if (reply->status != kHttpOk)
    co_return on_error(call, parse_etcd_error(reply->status, reply->body));
  finish(call, {EtcdOutcome::kAnswered, reply->body, {}});
  co_return true;
}

// An idle connection, or a new one; with a token if that is needed.
asio::awaitable<EtcdError> EtcdCalls::prepare(RunningPointer call) {
  call->endpoint = current_;
  const EtcdError unauthorized = co_await ensure_token();
  if (unauthorized.code != EtcdCode::kOk || call->finished) co_return unauthorized;
  call->endpoint = current_;  // others may have moved on meanwhile
  call->connection = take_idle();
  if (call->connection) co_return EtcdError{};
  call->connection = make_connection(call->endpoint);
  co_return co_await open(call->connection, call->endpoint);
}

// True when the call is finished: etcd has refused it, or a change has an unknown outcome.
bool EtcdCalls::on_error(const RunningPointer& call, EtcdError error) {
  call->last_error = error;
  if (is_refusal(error.code)) {
    call->sent = false;
    if (wants_new_token(error) && !options_.user.empty() && !call->asked_new_token) {
      call->asked_new_token = true;
      if (token_ == call->token) forget_token();  // else another call has got one
      return false;
    }
    finish(call, {EtcdOutcome::kRefused, {}, std::move(error)});
    return true;
  }
  move_on(call->endpoint);
  if (!call->sent || call->call.only_reads) return false;
  finish(call, {EtcdOutcome::kUnknown, {}, std::move(error)});
  return true;
}

EtcdCalls::Connection EtcdCalls::make_connection(size_t endpoint) {
  return std::make_shared<EtcdConnection>(io_, endpoints_[endpoint].tls ? tls_.get() : nullptr);
}

asio::awaitable<EtcdError> EtcdCalls::open(Connection connection, size_t endpoint) {
  const EtcdError unauthorized = co_await ensure_token();
  if (unauthorized.code != EtcdCode::kOk) co_return unauthorized;
  // Half of the time, so that a call gets to another member when this one does not answer.
  const auto connected =
      co_await connection->connect(endpoints_[endpoint], options_.call_limit / 2);
  if (!connected) co_return unreachable(endpoints_[endpoint], connected.error());
  co_return EtcdError{};
}

asio::awaitable<EtcdError> EtcdCalls::ensure_token() {
  if (!needs_token()) co_return EtcdError{};
  if (!authenticating_) {
    authenticating_ = make_connection(current_);
    token_asked_.expires_at(asio::steady_timer::time_point::max());
    asio::co_spawn(io_, authenticate(current_), asio::detached);
  }
  co_await token_asked_.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return auth_error_;
}

asio::awaitable<void> EtcdCalls::authenticate(size_t endpoint) {
  const auto self = shared_from_this();
  const Connection connection = authenticating_;
  auth_error_ = co_await fetch_token(connection, endpoint);
  connection->close();
  authenticating_ = nullptr;
  token_asked_.cancel();
}

asio::awaitable<EtcdError> EtcdCalls::fetch_token(Connection connection, size_t endpoint) {
  const auto connected =
      co_await connection->connect(endpoints_[endpoint], options_.call_limit / 2);
  if (!connected) co_return unreachable(endpoints_[endpoint], connected.error());
  connection->close_after(kTokenLimit);
  std::string request = etcd_request(endpoints_[endpoint], "/v3/auth/authenticate", {},
                                     etcd_authenticate_json(options_.user, options_.password));
  const auto reply = co_await exchange(connection, std::move(request));
  if (!reply) co_return unreachable(endpoints_[endpoint], reply.error());
  if (reply->status != kHttpOk) {
    const EtcdError error = parse_etcd_error(reply->status, reply->body);
    auth_is_off_ = error.code == EtcdCode::kFailedPrecondition;
    co_return auth_is_off_ ? EtcdError{} : error;
  }
  const auto token = parse_etcd_token(reply->body);
  if (!token) co_return unreachable(endpoints_[endpoint], token.error());
  token_ = *token;
  co_return EtcdError{};
}

EtcdCalls::Connection EtcdCalls::take_idle() {
  while (!idle_.empty()) {
    const Connection connection = std::move(idle_.back());
    idle_.pop_back();
    if (connection->is_idle()) return connection;
    connection->close();
  }
  return nullptr;
}

}  // namespace server::cluster
