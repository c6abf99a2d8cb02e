// SPDX-License-Identifier: MIT
//
// Listener: the sockets on the configured addresses, which CONFIG SET may change.
//
// Invariants: after open() they are the configured ones; a change is made as a whole or not at all.
// Thread safety: open() before the threads run; all others from any thread.
// Source: Redis' bind syntax ("*", "-::1" for an optional address).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/listener/client_acceptor.h"

namespace server::net {

class ListeningSocket;

class Listener {
 public:
  Listener(IoThreads& threads, Services& services, const Tls& tls)
      : threads_(threads), config_(services.config), clients_(threads, services, tls) {}
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Moves from now on when CONFIG SET says so. Errors: an address that cannot be bound (unless
  // marked optional), a path that is taken.
  core::Result<> open();
  // Begins to accept.
  void start();
  void close();

  // On I/O thread 0.
  ClientAcceptor& clients() { return clients_; }

 private:
  using Kind = ClientAcceptor::Kind;
  // An address to listen on.
  struct Place {
    Kind kind = Kind::kUnix;
    std::string address{};  // as configured, without its '-'
    uint16_t port = 0;
    bool is_optional = false;

    bool is_same(const Place& other) const {
      return kind == other.kind && port == other.port && address == other.address;
    }
  };
  struct Endpoint {
    Place place;
    std::shared_ptr<ListeningSocket> socket;
  };
  using Endpoints = std::vector<Endpoint>;

  void follow_options();
  // The configured TCP addresses.
  std::vector<Place> wanted_places() const;
  core::Result<> open_unix();
  // Adds the wanted endpoints that `endpoints` lacks. `outcome`: what the error says that becomes
  // of the server.
  core::Result<> open_tcp_endpoints(Endpoints& endpoints, std::string_view outcome);
  // Moves to the configured addresses; on failure the old ones stay.
  core::Result<> rebind();
  // Accepts from all. REQUIRES: mutex_.
  void accept();
  int backlog() const;

  IoThreads& threads_;
  Config& config_;
  ClientAcceptor clients_;
  std::mutex mutex_;  // guards endpoints_
  Endpoints endpoints_;
  std::string unix_path_;
};

}  // namespace server::net
