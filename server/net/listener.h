// SPDX-License-Identifier: MIT
//
// Listener: accepts connections on the configured addresses and deals them out to the I/O threads.
//
// Invariants: a unix socket is never reachable with wider permissions than configured, not even
// between bind and chmod; running out of descriptors pauses accepting and leaves clients served.
// Thread safety: open() before the threads run; all others from any thread; clients are accepted on
// I/O thread 0. Source: Redis' bind syntax ("*", "-::1" for an optional address).
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/commands/services.h"
#include "server/net/handshakes.h"
#include "server/net/io_threads.h"
#include "server/transport/tls.h"

namespace server::net {

class Listener {
 public:
  Listener(IoThreads& threads, Services& services, const Tls& tls)
      : threads_(threads), services_(services), tls_(tls), handshakes_(services) {}
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Moves from now on when CONFIG SET says so. Errors: an address that cannot be bound (unless
  // marked optional), a path that is taken.
  core::Result<> open();
  // Begins to accept.
  void start();
  // CONFIG SET of `bind`, `port` or `tls-port`: moves to the new addresses; on failure the old ones
  // stay.
  core::Result<> rebind();
  // Several times a second: ends handshakes that take too long. On I/O thread 0.
  void end_late_handshakes() { handshakes_.end_late(); }
  void close();

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol, Executor>;
  enum class Kind : uint8_t { kUnix, kTcp, kTls };
  // An address to listen on.
  struct Place {
    Kind kind = Kind::kUnix;
    std::string address{};  // as configured, without its '-'
    uint16_t port = 0;
    bool is_optional = false;

    bool is_same(const Place& other) const {
      return kind == other.kind && port == other.port && address == other.address;
    }
    std::string name() const;
  };
  // A listening socket.
  struct Endpoint : std::enable_shared_from_this<Endpoint> {
    Endpoint(asio::io_context& context, Place its_place)
        : acceptor(context), place(std::move(its_place)), pause(context) {}

    Acceptor acceptor;
    const Place place;
    bool is_awaited = false;
    bool is_retired = false;  // accepts no more
    Timer pause;
  };
  using Endpoints = std::vector<std::shared_ptr<Endpoint>>;

  void follow_options();
  // The configured TCP addresses.
  std::vector<Place> wanted_places() const;
  // Adds the wanted endpoints that `endpoints` lacks.
  core::Result<> open_tcp_endpoints(Endpoints& endpoints);
  core::Result<std::shared_ptr<Endpoint>> open_tcp(const Place& place);
  core::Result<> open_unix(const std::string& path, unsigned permissions);
  // Closes the socket. REQUIRES: mutex_.
  static void close(Endpoint& endpoint);
  // Starts accepting. REQUIRES: mutex_.
  void await(Endpoint& endpoint);
  // Accepts all that wait; false when the process has no descriptors left, or enough handshakes.
  bool accept_waiting(Endpoint& endpoint);
  void admit(int descriptor, Kind kind);
  std::shared_ptr<Session> new_session(int descriptor, Kind kind);
  // The reply for a client that must not be served; empty for the others.
  std::string refusal(int descriptor, Kind kind) const;

  IoThreads& threads_;
  Services& services_;
  const Tls& tls_;
  Handshakes handshakes_;  // belongs to I/O thread 0
  std::mutex mutex_;       // guards endpoints_ and their contents
  Endpoints endpoints_;
  std::string unix_path_;
};

}  // namespace server::net
