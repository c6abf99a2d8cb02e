// SPDX-License-Identifier: MIT
//
// EtcdCalls: sends HTTP requests to a cluster of etcd members. A request is either a call, which
// gets one reply, or a stream, whose reply continues until one side ends it. EtcdCalls chooses the
// member, authenticates, keeps idle connections and sets all deadlines.
//
// Invariants: etcd executes a change at most once. A call is attempted again only if it was not
// sent yet, if etcd has refused its token, or if it may be repeated. All idle connections
// lead to the current member. With TLS the member's certificate must be valid and must name the
// member's host name or address. A reply's header has at most 16 KiB. A reply's body, or a line of
// a stream's body, has at most kEtcdReplyBytesMax.
// Thread safety: only the thread that runs the io_context may use an object.
// Source: https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/, RFC 9112,
// https://www.boost.org/doc/libs/1_81_0/libs/beast/doc/html/beast/ref.html.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/cluster/etcd_client.h"

namespace server::cluster {

struct EtcdEndpoint {
  std::string host;  // IPv6 addresses are stored without brackets
  uint16_t port = 0;
  bool tls = false;

  bool operator==(const EtcdEndpoint&) const = default;
  std::string url() const;
};

// Parses "http://HOST:PORT" or "https://HOST:PORT", with an optional "/" at the end. The default
// port is 2379. Errors: the message names the URL and the expected form.
core::Result<EtcdEndpoint> parse_etcd_endpoint(std::string_view url);

// The reply to a call before its body is parsed, or the reason why there is none.
using EtcdAnswer = EtcdResult<std::string>;

// Returns whether the error shows that the call needs a new token. Either the call's token is too
// old, or authentication was switched on after the call had started.
bool wants_new_token(const EtcdError& error);

class EtcdCalls : public std::enable_shared_from_this<EtcdCalls> {
 public:
  struct Link;
  using LinkPointer = std::shared_ptr<Link>;

  struct Call {
    std::string path;
    std::string body;
    bool may_be_repeated = false;  // the call only reads data, or extends a lease
    // Returns whether the answer was understood. If it was not, the next member becomes the current
    // one.
    std::function<bool(EtcdAnswer)> handler;
  };
  // Stream: a request whose reply does not end.
  struct Stream {
    std::string path;
    std::string body;
    // Called for each line, without its line end. Returns the error that ends the stream, or kOk.
    std::function<EtcdError(std::string_view)> on_line;
    // The longest time between two lines. If it is exceeded, the stream ends. The first line must
    // arrive within the time limit of a call.
    std::chrono::milliseconds silence_max;
  };

  // `tls` may be null if no endpoint is an https URL.
  EtcdCalls(boost::asio::io_context& io, EtcdOptions options, std::vector<EtcdEndpoint> endpoints,
            std::unique_ptr<boost::asio::ssl::context> tls);

  void start(Call call);
  // Ends all calls without calling their handlers.
  void stop();

  boost::asio::io_context& io() { return io_; }
  size_t current() const { return current_; }
  bool has_user() const { return !options_.user.empty(); }
  // Drops the token, so that the next call or stream requests a new one.
  void forget_token();
  // Sets the function that is called when current() has changed.
  void on_move(std::function<void()> listener) { on_move_ = std::move(listener); }
  // Makes the next endpoint the current one, if `failed` is the current one.
  void move_on(size_t failed);

  // Returns an unopened connection to the current member. run_stream() opens it.
  LinkPointer make_link();
  static size_t member_of(const LinkPointer& link);
  // Returns whether an attempt was made to open the connection. It is false while the stream waits
  // for a token.
  static bool was_opened(const LinkPointer& link);
  // Closes the connection. Its pending operations end with an error.
  static void close(const LinkPointer& link);
  // Runs the stream on the connection, and returns why it has ended. `stream` must outlive the
  // call.
  boost::asio::awaitable<EtcdError> run_stream(LinkPointer link, const Stream& stream);

 private:
  struct Running;
  using RunningPointer = std::shared_ptr<Running>;
  struct Reply;
  struct Lookup;
  using LookupPointer = std::shared_ptr<Lookup>;

  boost::asio::awaitable<void> run(RunningPointer call);
  // Tries the call at the current member. Returns whether the call is finished.
  boost::asio::awaitable<bool> try_current(RunningPointer call);
  // Gives the call an idle connection or a new one, and a token if the call needs one.
  boost::asio::awaitable<EtcdError> prepare(RunningPointer call);
  bool on_error(const RunningPointer& call, EtcdError error);
  void on_limit(const RunningPointer& call);
  void finish(const RunningPointer& call, EtcdAnswer answer);
  // finish_with() and give_up() are not coroutines, because g++ 12 copies aggregates in coroutine
  // frames byte by byte, which breaks strings.
  void finish_with(const RunningPointer& call, std::string body);
  void give_up(const RunningPointer& call);
  // An attempt to connect has half of the call's time limit, so that the call can reach another
  // member if this one does not answer. The wait for the host's address is not part of that time.
  boost::asio::awaitable<EtcdError> connect(LinkPointer link);
  // Starts a lookup of the member's host name, unless one is running.
  LookupPointer look_up(size_t member);
  boost::asio::awaitable<void> run_lookup(size_t member);
  // Waits until the lookup has ended, for token_limit at most.
  boost::asio::awaitable<void> wait_for(LookupPointer lookup, LinkPointer link);
  boost::asio::awaitable<EtcdError> send(LinkPointer link, std::string_view path,
                                         std::string_view body);
  boost::asio::awaitable<Reply> exchange(LinkPointer link, std::string_view path,
                                         std::string_view body);
  // If calls need a token, waits until there is one. On success, EtcdError::code is kOk.
  boost::asio::awaitable<EtcdError> ensure_token();
  // Requests a token for all waiting calls. The request may take longer than a call, because etcd
  // hashes the password slowly on purpose. A call that timed out must not restart the request. If
  // the request fails or is late, the next member becomes the current one.
  boost::asio::awaitable<void> authenticate();
  // A request without a reply doubles the time limit of the next one. etcd may be busy with the
  // passwords of many servers.
  boost::asio::awaitable<EtcdError> fetch_token();
  LinkPointer take_idle();
  EtcdError unreachable(const LinkPointer& link, std::string_view why) const;

  boost::asio::io_context& io_;
  const EtcdOptions options_;
  const std::vector<EtcdEndpoint> endpoints_;
  const std::unique_ptr<boost::asio::ssl::context> tls_;
  std::vector<LookupPointer> lookups_;  // one for each endpoint
  size_t current_ = 0;
  std::string token_;
  bool auth_is_off_ = false;    // true once etcd has reported that authentication is off
  LinkPointer authenticating_;  // the connection that requests a token; null if there is none
  EtcdError auth_error_;        // error of the last request for a token
  std::chrono::milliseconds token_limit_;  // time limit of the next request for a token

  // Until this time, calls get auth_error_ instead of requesting a token.
  std::chrono::steady_clock::time_point next_token_at_;

  // The timer that is canceled when the reply to the token request arrives.
  boost::asio::steady_timer token_asked_;
  std::vector<LinkPointer> idle_;
  std::set<RunningPointer> calls_;
  std::function<void()> on_move_;
  bool stopped_ = false;
};

}  // namespace server::cluster
