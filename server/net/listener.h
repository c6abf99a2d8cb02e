// SPDX-License-Identifier: MIT
//
// Listener: the sockets on the configured addresses, which CONFIG SET may change.
//
// Invariants: after open() the sockets match the configuration; a change is applied as a whole or
// not at all.
// Thread safety: open() must be called before other threads start. Any thread may call the other
// members.
// Source: Redis' bind syntax ("*", "-::1" for an optional address).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/net/client_acceptor.h"

namespace server::net {

class ListeningSocket;

class Listener {
 public:
  Listener(IoThreads& threads, Services& services, const Tls& tls)
      : threads_(threads), config_(services.config), clients_(threads, services, tls) {}
  ~Listener() { close(); }

  // Opens the sockets, and follows changes by CONFIG SET from now on. Errors: no address is
  // configured, an address cannot be bound (unless it is marked optional), or the unix socket
  // cannot be opened.
  core::Result<> open();
  // Starts to accept clients.
  void start();
  void close();

  // Returns the acceptor, which must be used on I/O thread 0 only.
  ClientAcceptor& clients() { return clients_; }

 private:
  using Kind = ClientAcceptor::Kind;
  // An address on which the server listens.
  struct Place {
    Kind kind = Kind::kUnix;
    std::string address{};  // the configured address, without a leading '-'
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
  // Returns the configured TCP addresses.
  std::vector<Place> wanted_places() const;
  core::Result<> open_unix();
  // Opens the configured endpoints that are missing in `endpoints`. `outcome` is appended to the
  // error text, for example ", aborting" if the server cannot start.
  core::Result<> open_tcp_endpoints(Endpoints& endpoints, std::string_view outcome);
  // Opens the configured addresses in place of the old ones. If this fails, the old sockets stay
  // open.
  core::Result<> rebind();
  // Starts to accept on all sockets. REQUIRES: the caller holds mutex_.
  void accept();
  int backlog() const;

  IoThreads& threads_;
  Config& config_;
  ClientAcceptor clients_;
  std::mutex mutex_;  // this mutex guards the members below
  Endpoints endpoints_;
  std::string unix_path_;
};

}  // namespace server::net
