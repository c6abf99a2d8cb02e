// SPDX-License-Identifier: MIT
//
// EtcdCalls: posts requests to one of several etcd members and gets the bodies of their replies;
// the part of EtcdClient below its messages.
//
// Invariants: a call's handler runs once, or never after stop(). A request that may change
// something is sent once; only before it is sent, after an answer that excludes it, or if it only
// reads, another member gets it. Idle connections are all to the current endpoint.
// Thread safety: none; everything runs on the io_context's thread.
// Source: https://etcd.io/docs/v3.4/learning/api/.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/cluster/etcd_client.h"
#include "server/cluster/etcd_connection.h"
#include "server/cluster/etcd_http.h"

namespace server::cluster {

// An answer before it is parsed.
struct EtcdAnswer {
  EtcdOutcome outcome = EtcdOutcome::kUnknown;
  std::string body;
  EtcdError error;
};

struct EtcdHttpReply {
  unsigned status = 0;
  std::string body;
  bool keeps_alive = false;
};

// Errors: the connection's, and a reply that is no HTTP.
boost::asio::awaitable<core::Result<EtcdHttpReply>> exchange(
    std::shared_ptr<EtcdConnection> connection, std::string request);

// The token is too old, or authentication was switched on meanwhile.
bool wants_new_token(const EtcdError& error);

class EtcdCalls : public std::enable_shared_from_this<EtcdCalls> {
 public:
  using Connection = std::shared_ptr<EtcdConnection>;

  struct Call {
    std::string path;
    std::string body;
    bool only_reads = false;
    std::function<void(EtcdAnswer)> handler;
  };

  // tls: null if no endpoint has https.
  EtcdCalls(boost::asio::io_context& io, EtcdOptions options, std::vector<EtcdEndpoint> endpoints,
            std::unique_ptr<boost::asio::ssl::context> tls);

  void start(Call call);
  // Ends all calls without their handlers.
  void stop();

  // What watches use besides.
  boost::asio::io_context& io() { return io_; }
  size_t current() const { return current_; }
  const EtcdEndpoint& endpoint(size_t index) const { return endpoints_[index]; }
  const EtcdOptions& options() const { return options_; }
  const std::string& token() const { return token_; }
  // The next connection gets a new one.
  void forget_token();
  // Called when current() has changed.
  void on_move(std::function<void()> listener) { on_move_ = std::move(listener); }
  // Later calls go to the next endpoint, if `failed` is the current one.
  void move_on(size_t failed);
  // A connection with its own limit, and a token if one is needed.
  // Errors: kOk is none.
  boost::asio::awaitable<EtcdError> open(Connection connection, size_t endpoint);
  Connection make_connection(size_t endpoint);

 private:
  struct Running;
  using RunningPointer = std::shared_ptr<Running>;

  boost::asio::awaitable<void> run(RunningPointer call);
  // True when the call is finished.
  boost::asio::awaitable<bool> try_current(RunningPointer call);
  boost::asio::awaitable<EtcdError> prepare(RunningPointer call);
  bool on_error(const RunningPointer& call, EtcdError error);
  // Waits until there is a token, if one is needed. Errors: kOk is none.
  boost::asio::awaitable<EtcdError> ensure_token();
  // Asks for a token, for all who wait. It may take longer than a call: etcd hashes the password
  // slowly on purpose, and a call that gave up must not begin it anew.
  boost::asio::awaitable<void> authenticate(size_t endpoint);
  boost::asio::awaitable<EtcdError> fetch_token(Connection connection, size_t endpoint);
  void on_limit(const RunningPointer& call);
  void finish(const RunningPointer& call, EtcdAnswer answer);
  Connection take_idle();
  bool needs_token() const { return !options_.user.empty() && token_.empty() && !auth_is_off_; }

  boost::asio::io_context& io_;
  const EtcdOptions options_;
  const std::vector<EtcdEndpoint> endpoints_;
  const std::unique_ptr<boost::asio::ssl::context> tls_;
  size_t current_ = 0;
  std::string token_;
  bool auth_is_off_ = false;               // etcd has said so
  Connection authenticating_;              // null: nobody asks for a token
  EtcdError auth_error_;                   // of the last time
  boost::asio::steady_timer token_asked_;  // canceled when the answer is there
  std::vector<Connection> idle_;
  std::set<RunningPointer> calls_;
  std::function<void()> on_move_;
  bool stopped_ = false;
};

}  // namespace server::cluster
