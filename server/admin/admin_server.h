// SPDX-License-Identifier: MIT
//
// AdminServer: the admin HTTP port. Owns the listening sockets, the thread that serves the
// connections, and the site.
//
// The port has its own thread, because one answer takes milliseconds. Clients of the database do
// not wait for answers of this port.
//
// Invariants: the port has at most kConnectionsMax connections. A further connection replaces the
// one whose last progress is the oldest, so slow clients cannot keep other clients out.
// Thread safety: the main thread calls open(), start() and stop(), in this order.
// Source: RFC 9112; conf/bloomery.conf, http-port.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "core/result.h"
#include "server/admin/heartbeat.h"
#include "server/admin/site.h"
#include "server/admin/write_caller.h"
#include "server/net/loop/asio_types.h"

namespace server {
class Tls;
struct Services;
}  // namespace server
namespace server::net {
class ListeningSocket;
}

namespace server::admin {

class HttpConnection;

class AdminServer {
 public:
  static constexpr size_t kConnectionsMax = 64;

  // `ask` calls a function as soon as each thread that serves clients has been between two commands
  // (heartbeat.h). `post` runs a task on one of these threads (write_caller.h).
  AdminServer(Services& services, const Tls& tls, Heartbeat::Ask ask, WriteCaller::Post post);
  ~AdminServer() { stop(); }

  // Binds the addresses of `http-bind`. Without `http-port` no address is bound. Errors: an address
  // that is not marked as optional cannot be bound, or no address at all can be bound.
  core::Result<> open();
  void start();
  // Closes all connections and ends the thread. May be called more than once.
  void stop();

 private:
  void admit(int descriptor);
  // Closes a connection if the port has too many.
  void make_room();
  void tick();
  void close();

  Services& services_;
  const Tls& tls_;
  Heartbeat heartbeat_;
  net::asio::io_context context_{1};
  net::Timer timer_{context_};
  Site site_;
  std::vector<std::shared_ptr<net::ListeningSocket>> doors_;
  std::vector<std::shared_ptr<HttpConnection>> connections_;
  bool is_encrypted_ = false;
  bool is_closed_ = false;
  std::thread thread_;
};

}  // namespace server::admin
