// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_calls.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <optional>
#include <regex>
#include <utility>

#include "core/printable.h"
#include "server/base/config/host.h"
#include "server/base/transport/tls_stream.h"

namespace server::cluster {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr unsigned kHttpOk = 200;
constexpr auto kAsValue = asio::as_tuple(asio::use_awaitable);
constexpr size_t kIdleConnectionsMax = 4;
constexpr std::chrono::milliseconds kTokenLimitMax{12'000};
constexpr uint32_t kHeaderBytesMax = 16 * 1024;
constexpr size_t kReadBytes = size_t{64} << 10;
constexpr size_t kHostBytesMax = 253;  // the longest host name by RFC 1035

// Returns whether etcd has checked the password and refused it. An overloaded etcd is asked again
// at once.
bool refuses_password(EtcdCode code) {
  return code == EtcdCode::kInvalidArgument || code == EtcdCode::kPermissionDenied ||
         code == EtcdCode::kUnauthenticated;
}

}  // namespace

std::string EtcdEndpoint::url() const {
  return fmt::format("{}://{}", tls ? "https" : "http", host_and_port(host, port));
}

core::Result<EtcdEndpoint> parse_etcd_endpoint(std::string_view url) {
  static const std::regex kUrl(
      R"(http(s?)://(?:\[([0-9a-fA-F:.]+)\]|([0-9A-Za-z._-]+))(?::([0-9]{1,5}))?/?)");
  std::cmatch parts;
  if (std::regex_match(url.data(), url.data() + url.size(), parts, kUrl)) {
    const uint16_t port = parts[4].matched ? parse_port(parts[4].str()).value_or(0) : 2379;
    const std::string host = parts[2].str() + parts[3].str();
    if (port != 0 && host.size() <= kHostBytesMax) {
      return EtcdEndpoint{host, port, parts[1].length() != 0};
    }
  }
  // An error text must not repeat a password.
  if (url.find('@') != std::string_view::npos) {
    return core::Error{
        "ERR an etcd endpoint has a user name or a password: remove them from the URL. A server "
        "has cluster-etcd-user and cluster-etcd-password, and bloomery-cluster has --user and "
        "--password-file"};
  }
  return core::Error{fmt::format(
      "ERR etcd endpoint '{}' is not http://HOST:PORT or https://HOST:PORT", core::printable(url))};
}

bool wants_new_token(const EtcdError& error) {
  const auto says = [&](std::string_view text) {
    return error.code == EtcdCode::kInvalidArgument &&
           error.message.find(text) != std::string::npos;
  };
  return error.code == EtcdCode::kUnauthenticated || says("user name is empty") ||
         says("auth store is old");
}

// Link: one TCP or TLS connection to an etcd member.
struct EtcdCalls::Link {
  Link(asio::io_context& io, size_t of_member, asio::ssl::context* context)
      : member(of_member), tcp(io) {
    if (context != nullptr) tls.emplace(tcp, *context);
  }

  // Returns false if the peer has closed the connection or has sent unrequested bytes.
  bool is_idle() {
    char byte = 0;
    if (is_closed || buffer.size() != 0) return false;
    const ssize_t got = ::recv(tcp.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
  // write() and receive() start an operation of the stream in use, TLS or TCP. They are functions,
  // because g++ 12 destroys the operands of `co_await (a ? b : c)` twice.
  auto write(asio::const_buffer bytes) {
    return tls ? asio::async_write(*tls, bytes, kAsValue) : asio::async_write(tcp, bytes, kAsValue);
  }
  auto receive(asio::mutable_buffer room) {
    return tls ? tls->async_read_some(room, kAsValue) : tcp.async_read_some(room, kAsValue);
  }
  // Receives bytes until `parser` has made progress: a header, a part of a body, or the end of the
  // message. Beast's operations do the same, but the compiler takes half a minute for each of them.
  asio::awaitable<error_code> read_some(http::basic_parser<false>& parser);
  // Receives the bytes of a whole HTTP message.
  asio::awaitable<error_code> read(http::basic_parser<false>& parser);

  const size_t member;
  boost::beast::tcp_stream tcp;
  std::optional<asio::ssl::stream<boost::beast::tcp_stream&>> tls;
  boost::beast::flat_buffer buffer;  // bytes that were received but not parsed yet
  bool is_closed = false;
  bool was_opened = false;
  bool awaits_address = false;
};

asio::awaitable<error_code> EtcdCalls::Link::read_some(http::basic_parser<false>& parser) {
  while (true) {
    error_code state = http::error::need_more;
    if (buffer.size() != 0) buffer.consume(parser.put(buffer.data(), state));
    if (state != http::error::need_more) co_return state;
    const asio::mutable_buffer room = buffer.prepare(kReadBytes);
    const auto [failed, size] = co_await receive(room);
    buffer.commit(size);
    if (failed == asio::error::eof && parser.got_some()) {
      error_code incomplete;
      parser.put_eof(incomplete);
      co_return incomplete;
    }
    if (failed) co_return failed;
  }
}

asio::awaitable<error_code> EtcdCalls::Link::read(http::basic_parser<false>& parser) {
  parser.eager(true);
  error_code failed;
  while (!failed && !parser.is_done()) failed = co_await read_some(parser);
  co_return failed;
}

// Lookup: the addresses of an endpoint's host name, by DNS. All connections to the endpoint share
// one lookup at a time, because the io_context has only one thread for lookups.
struct EtcdCalls::Lookup {
  std::vector<tcp::endpoint> addresses;  // by the last lookup that found some
  std::string error;                     // why the last lookup failed
  bool is_running = false;
  std::set<asio::steady_timer*> waits;  // canceled when the lookup ends
};

// The outcome of an HTTP exchange. kOk means that a reply was received, with any HTTP status.
struct EtcdCalls::Reply {
  EtcdError error;
  unsigned status = 0;
  std::string body = {};
  bool keeps_alive = false;
};

struct EtcdCalls::Running {
  Running(asio::io_context& io, Call asked) : call(std::move(asked)), limit(io) {}

  Call call;
  asio::steady_timer limit;
  LinkPointer link;
  size_t member = 0;
  std::string token;  // the token with which the call was sent

  // True if etcd may have executed the call: it was sent, and no reply shows that etcd rejected it.
  bool sent = false;

  // True until there is the token that the call needs.
  bool awaits_token = true;

  // True after the call has requested a new token. A call requests at most one.
  bool asked_new_token = false;
  bool finished = false;
  EtcdError last_error{EtcdCode::kDeadlineExceeded, "no etcd member has answered in time"};
};

EtcdCalls::EtcdCalls(asio::io_context& io, EtcdOptions options, std::vector<EtcdEndpoint> endpoints,
                     std::unique_ptr<asio::ssl::context> tls)
    : io_(io),
      options_(std::move(options)),
      endpoints_(std::move(endpoints)),
      tls_(std::move(tls)),
      token_limit_(options_.token_limit),
      token_asked_(io) {
  for (size_t i = 0; i < endpoints_.size(); ++i) lookups_.push_back(std::make_shared<Lookup>());
}

void EtcdCalls::start(Call call) {
  auto running = std::make_shared<Running>(io_, std::move(call));
  calls_.insert(running);
  running->limit.expires_after(options_.call_limit);
  const std::weak_ptr<EtcdCalls> weak = weak_from_this();
  running->limit.async_wait([weak, running](const error_code& canceled) {
    const auto self = weak.lock();
    if (!canceled && self) self->on_limit(running);
  });
  // The call is posted, so that an immediate failure does not call the handler inside this
  // function.
  asio::post(io_, [self = shared_from_this(), running] {
    asio::co_spawn(self->io_, self->run(running), asio::detached);
  });
}

void EtcdCalls::stop() {
  stopped_ = true;
  close(authenticating_);
  on_move_ = nullptr;
  for (const RunningPointer& call : calls_) {
    call->finished = true;
    call->limit.cancel();
    close(call->link);
  }
  calls_.clear();
  std::ranges::for_each(std::exchange(idle_, {}), close);
  for (const LookupPointer& lookup : lookups_) {
    for (asio::steady_timer* const wait : lookup->waits) wait->cancel();
  }
}

void EtcdCalls::on_limit(const RunningPointer& call) {
  if (call->finished) return;
  // The request for a token has a time limit of its own. It may go to another member than the call.
  if (!call->awaits_token) move_on(call->member);
  EtcdAnswer answer{
      call->sent ? EtcdOutcome::kUnknown : EtcdOutcome::kRefused, {}, call->last_error};
  const auto late = [&](size_t member, std::string_view what) {
    return EtcdError{EtcdCode::kDeadlineExceeded,
                     fmt::format("{}: no {} within {} ms", endpoints_[member].url(), what,
                                 options_.call_limit.count())};
  };
  const LinkPointer& link = call->awaits_token ? authenticating_ : call->link;
  if (link && link->awaits_address) {
    answer.error = late(link->member, "address from DNS");
  } else if (call->awaits_token && authenticating_) {
    answer.error = late(authenticating_->member, "token for the user of etcd");
  } else if (call->sent) {
    answer.error = late(call->member, "answer");
  }
  finish(call, std::move(answer));
}

void EtcdCalls::finish(const RunningPointer& call, EtcdAnswer answer) {
  if (std::exchange(call->finished, true)) return;
  call->limit.cancel();
  close(std::exchange(call->link, nullptr));
  calls_.erase(call);
  if (!call->call.handler(std::move(answer))) move_on(call->member);
}

void EtcdCalls::move_on(size_t failed) {
  if (stopped_ || failed != current_) return;
  current_ = (current_ + 1) % endpoints_.size();
  std::ranges::for_each(std::exchange(idle_, {}), close);
  if (on_move_) on_move_();
}

void EtcdCalls::forget_token() {
  token_.clear();
  auth_is_off_ = false;
}

asio::awaitable<void> EtcdCalls::run(RunningPointer call) {
  const auto self = shared_from_this();  // keeps this object alive if a handler destroys the client

  // The loop makes one attempt per endpoint, and one more if the call has requested a new token.
  for (size_t i = 0; i <= endpoints_.size() && !call->finished; ++i) {
    const bool done = co_await try_current(call);
    if (done) co_return;
    if (i + 1 >= endpoints_.size() && !call->asked_new_token) break;
  }
  give_up(call);
}

void EtcdCalls::give_up(const RunningPointer& call) {
  const auto outcome = call->sent ? EtcdOutcome::kUnknown : EtcdOutcome::kRefused;
  finish(call, {outcome, {}, call->last_error});
}

void EtcdCalls::finish_with(const RunningPointer& call, std::string body) {
  finish(call, {EtcdOutcome::kAnswered, std::move(body), {}});
}

asio::awaitable<bool> EtcdCalls::try_current(RunningPointer call) {
  const EtcdError unprepared = co_await prepare(call);
  if (call->finished) co_return true;
  if (unprepared.code != EtcdCode::kOk) co_return on_error(call, unprepared);

  call->sent = true;
  call->token = token_;
  const LinkPointer link = call->link;
  Reply reply = co_await exchange(link, call->call.path, call->call.body);
  if (call->finished) co_return true;
  if (reply.error.code == EtcdCode::kOk) call->link = nullptr;
  const bool may_be_kept = link->member == current_ && idle_.size() < kIdleConnectionsMax;
  if (reply.keeps_alive && may_be_kept) {
    idle_.push_back(link);
  } else {
    close(link);
  }
  if (reply.error.code != EtcdCode::kOk) co_return on_error(call, reply.error);
  if (reply.status != kHttpOk) co_return on_error(call, parse_etcd_error(reply.status, reply.body));
  finish_with(call, std::move(reply.body));
  co_return true;
}

asio::awaitable<EtcdError> EtcdCalls::prepare(RunningPointer call) {
  call->member = current_;
  call->awaits_token = true;
  const EtcdError unauthorized = co_await ensure_token();
  if (unauthorized.code != EtcdCode::kOk || call->finished) co_return unauthorized;
  call->awaits_token = false;
  call->member = current_;  // another call may have changed current_ during the wait for the token
  call->link = take_idle();
  if (call->link) co_return EtcdError{};
  call->link = make_link();
  co_return co_await connect(call->link);
}

// Returns whether the error finishes the call. A refusal by etcd finishes the call, unless a new
// token could help. After any other error, a call that may have changed data is finished with the
// outcome kUnknown.
bool EtcdCalls::on_error(const RunningPointer& call, EtcdError error) {
  call->last_error = error;
  if (is_refusal(error.code)) {
    call->sent = false;
    if (wants_new_token(error) && has_user() && !call->asked_new_token) {
      call->asked_new_token = true;
      // If another call has obtained a newer token while this call was running, that token is kept.
      if (token_ == call->token) forget_token();
      return false;
    }
    finish(call, {EtcdOutcome::kRefused, {}, std::move(error)});
    return true;
  }
  if (!call->awaits_token) move_on(call->member);
  if (!call->sent || call->call.may_be_repeated) return false;
  finish(call, {EtcdOutcome::kUnknown, {}, std::move(error)});
  return true;
}

EtcdCalls::LinkPointer EtcdCalls::make_link() {
  return std::make_shared<Link>(io_, current_, endpoints_[current_].tls ? tls_.get() : nullptr);
}

size_t EtcdCalls::member_of(const LinkPointer& link) {
  return link->member;
}

bool EtcdCalls::was_opened(const LinkPointer& link) {
  return link->was_opened;
}

void EtcdCalls::close(const LinkPointer& link) {
  if (!link) return;
  link->is_closed = true;
  link->tcp.close();
}

EtcdCalls::LinkPointer EtcdCalls::take_idle() {
  while (!idle_.empty()) {
    const LinkPointer link = std::move(idle_.back());
    idle_.pop_back();
    if (link->is_idle()) return link;
    close(link);
  }
  return nullptr;
}

EtcdError EtcdCalls::unreachable(const LinkPointer& link, std::string_view why) const {
  return {EtcdCode::kUnavailable, fmt::format("{}: {}", endpoints_[link->member].url(), why)};
}

EtcdCalls::LookupPointer EtcdCalls::look_up(size_t member) {
  const LookupPointer lookup = lookups_[member];
  if (!std::exchange(lookup->is_running, true)) {
    asio::co_spawn(io_, run_lookup(member), asio::detached);
  }
  return lookup;
}

asio::awaitable<void> EtcdCalls::run_lookup(size_t member) {
  const auto self = shared_from_this();
  const LookupPointer lookup = lookups_[member];
  const EtcdEndpoint& endpoint = endpoints_[member];
  tcp::resolver resolver(io_);
  const auto [failed, found] =
      co_await resolver.async_resolve(endpoint.host, std::to_string(endpoint.port), kAsValue);
  lookup->is_running = false;
  lookup->error = failed.message();
  if (!failed) lookup->addresses.clear();
  for (const auto& entry : found) lookup->addresses.push_back(entry.endpoint());
  for (asio::steady_timer* const wait : lookup->waits) wait->cancel();
}

asio::awaitable<void> EtcdCalls::wait_for(LookupPointer lookup, LinkPointer link) {
  asio::steady_timer wait(io_, options_.token_limit);
  lookup->waits.insert(&wait);
  link->awaits_address = true;
  co_await wait.async_wait(kAsValue);
  link->awaits_address = false;
  lookup->waits.erase(&wait);
}

asio::awaitable<EtcdError> EtcdCalls::connect(LinkPointer link) {
  link->was_opened = true;
  const EtcdEndpoint& endpoint = endpoints_[link->member];
  std::vector<tcp::endpoint> addresses;
  error_code not_numeric;
  const auto address = asio::ip::make_address(endpoint.host, not_numeric);
  if (!not_numeric) {
    addresses.emplace_back(address, endpoint.port);
  } else {
    // Known addresses are used at once, and the lookup corrects them for the next connection.
    const LookupPointer lookup = look_up(link->member);
    if (lookup->addresses.empty()) co_await wait_for(lookup, link);
    addresses = lookup->addresses;
    if (addresses.empty()) {
      if (lookup->is_running) co_return unreachable(link, "address: DNS does not answer");
      co_return unreachable(link, "address: " + lookup->error);
    }
  }
  if (link->is_closed) co_return unreachable(link, "closed");
  link->tcp.expires_after(options_.call_limit / 2);
  const auto [failed, connected] = co_await link->tcp.async_connect(addresses, kAsValue);
  if (failed) co_return unreachable(link, "connect: " + failed.message());
  error_code ignored;
  link->tcp.socket().set_option(tcp::no_delay(true), ignored);
  if (link->tls) {
    SSL* const native = link->tls->native_handle();
    if (not_numeric) SSL_set_tlsext_host_name(native, endpoint.host.c_str());
    const int is_verified =
        not_numeric ? SSL_set1_host(native, endpoint.host.c_str())
                    : X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(native), endpoint.host.c_str());
    if (is_verified != 1) co_return unreachable(link, "TLS: the host cannot be verified");
    const auto [refused] =
        co_await link->tls->async_handshake(asio::ssl::stream_base::client, kAsValue);
    if (refused) {
      if (refused.category() != asio::error::get_ssl_category()) {
        co_return unreachable(link, "TLS: " + refused.message());
      }
      const auto code = static_cast<unsigned long>(refused.value());
      co_return unreachable(link, "TLS: " + connection_error(native, code));
    }
  }
  link->tcp.expires_never();
  co_return EtcdError{};
}

asio::awaitable<EtcdError> EtcdCalls::send(LinkPointer link, std::string_view path,
                                           std::string_view body) {
  const std::string authorization =
      token_.empty() ? "" : fmt::format("Authorization: {}\r\n", token_);
  const EtcdEndpoint& endpoint = endpoints_[link->member];
  // With Grpc-Metadata-hasleader, an etcd member without a leader reports an error at once and ends
  // its watches.
  const std::string request = fmt::format(
      "POST {} HTTP/1.1\r\n"
      "Host: {}\r\n"
      "Content-Type: application/json\r\n"
      "Grpc-Metadata-hasleader: true\r\n"
      "{}"
      "Content-Length: {}\r\n\r\n"
      "{}",
      path, host_and_port(endpoint.host, endpoint.port), authorization, body.size(), body);
  const auto [failed, size] = co_await link->write(asio::buffer(request));
  co_return failed ? unreachable(link, "write: " + failed.message()) : EtcdError{};
}

asio::awaitable<EtcdCalls::Reply> EtcdCalls::exchange(LinkPointer link, std::string_view path,
                                                      std::string_view body) {
  Reply reply;
  reply.error = co_await send(link, path, body);
  if (reply.error.code != EtcdCode::kOk) co_return reply;
  http::response_parser<http::string_body> parser;
  parser.header_limit(kHeaderBytesMax);
  parser.body_limit(kEtcdReplyBytesMax);
  const error_code failed = co_await link->read(parser);
  if (failed) {
    reply.error = unreachable(link, "read: " + failed.message());
  } else {
    reply.status = parser.get().result_int();
    reply.keeps_alive = parser.keep_alive();
    reply.body = std::move(parser.get().body());
  }
  co_return reply;
}

asio::awaitable<EtcdError> EtcdCalls::run_stream(LinkPointer link, const Stream& stream) {
  EtcdError error = co_await ensure_token();
  if (error.code == EtcdCode::kOk) error = co_await connect(link);
  if (error.code != EtcdCode::kOk) co_return error;
  link->tcp.expires_after(options_.call_limit);
  error = co_await send(link, stream.path, stream.body);
  if (error.code != EtcdCode::kOk) co_return error;
  // The response body of a stream may have any length. It is read in pieces, so no memory is
  // allocated for the length that the HTTP header announces.
  http::response_parser<http::buffer_body> parser;
  parser.header_limit(kHeaderBytesMax);
  parser.body_limit(boost::none);
  std::string text;  // the unfinished last line; for an error reply, the whole body
  while (!parser.is_done()) {
    std::array<char, 16 * 1024> room;
    parser.get().body() = {room.data(), room.size(), true};
    error_code failed = co_await link->read_some(parser);
    if (failed == http::error::need_buffer) failed.clear();
    if (failed) co_return unreachable(link, "read: " + failed.message());
    if (!parser.is_header_done()) continue;
    const size_t searched = text.size();  // the text before this position contains no line end
    text.append(room.data(), room.size() - parser.get().body().size);
    if (parser.get().result_int() == kHttpOk) {
      size_t begin = 0;
      for (size_t end = text.find('\n', searched); end != text.npos; end = text.find('\n', begin)) {
        if (end > begin) error = stream.on_line(std::string_view(text).substr(begin, end - begin));
        if (error.code != EtcdCode::kOk || link->is_closed) co_return error;
        begin = end + 1;
        link->tcp.expires_after(stream.silence_max);
      }
      text.erase(0, begin);
    }
    // A message larger than the limit ends the stream without a retry, because etcd would send the
    // same message again.
    if (text.size() > kEtcdReplyBytesMax)
      co_return EtcdError{EtcdCode::kOutOfRange, "too many changes at once"};
  }
  if (parser.get().result_int() == kHttpOk) co_return unreachable(link, "the stream has ended");
  co_return parse_etcd_error(parser.get().result_int(), text);
}

asio::awaitable<EtcdError> EtcdCalls::ensure_token() {
  if (!has_user() || !token_.empty() || auth_is_off_) co_return EtcdError{};
  if (!authenticating_) {
    if (std::chrono::steady_clock::now() < next_token_at_) co_return auth_error_;
    authenticating_ = make_link();
    token_asked_.expires_at(asio::steady_timer::time_point::max());
    asio::co_spawn(io_, authenticate(), asio::detached);
  }
  co_await token_asked_.async_wait(kAsValue);
  co_return auth_error_;
}

asio::awaitable<void> EtcdCalls::authenticate() {
  const auto self = shared_from_this();
  const size_t member = authenticating_->member;
  auth_error_ = co_await fetch_token();
  close(std::exchange(authenticating_, nullptr));
  if (refuses_password(auth_error_.code)) {
    next_token_at_ = std::chrono::steady_clock::now() + options_.token_pause;
  } else if (auth_error_.code != EtcdCode::kOk) {
    move_on(member);
  }
  token_asked_.cancel();
}

asio::awaitable<EtcdError> EtcdCalls::fetch_token() {
  const LinkPointer link = authenticating_;
  const EtcdError unconnected = co_await connect(link);
  if (unconnected.code != EtcdCode::kOk) co_return unconnected;
  const auto begin = std::chrono::steady_clock::now();
  link->tcp.expires_after(token_limit_);
  const Reply reply = co_await exchange(link, "/v3/auth/authenticate",
                                        etcd_authenticate_json(options_.user, options_.password));
  if (reply.error.code != EtcdCode::kOk) {
    const auto limit = std::exchange(token_limit_, std::min(2 * token_limit_, kTokenLimitMax));
    if (std::chrono::steady_clock::now() - begin < limit) co_return reply.error;
    co_return EtcdError{
        EtcdCode::kDeadlineExceeded,
        fmt::format("{}: no token within {} ms", endpoints_[link->member].url(), limit.count())};
  }
  token_limit_ = options_.token_limit;
  if (reply.status != kHttpOk) {
    const EtcdError error = parse_etcd_error(reply.status, reply.body);
    auth_is_off_ = error.code == EtcdCode::kFailedPrecondition;
    co_return auth_is_off_ ? EtcdError{} : error;
  }
  const auto token = parse_etcd_token(reply.body);
  if (!token) co_return unreachable(link, core::without_code(token.error().message));
  token_ = *token;
  co_return EtcdError{};
}

}  // namespace server::cluster
