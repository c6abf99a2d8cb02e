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

#include "core/result.h"
#include "server/admin/heartbeat.h"
#include "server/admin/write_caller.h"

namespace server {
class Tls;
struct Services;
}  // namespace server

namespace server::admin {

class AdminServer {
 public:
  static constexpr size_t kConnectionsMax = 64;

  // `ask` calls a function as soon as each thread that serves clients has been between two commands
  // (heartbeat.h). `post` runs a task on one of these threads (write_caller.h).
  AdminServer(Services& services, const Tls& tls, Heartbeat::Ask ask, WriteCaller::Post post);
  ~AdminServer();

  // Binds the addresses of `http-bind`. Without `http-port` no address is bound. Errors: an address
  // that is not marked as optional cannot be bound, or no address at all can be bound.
  core::Result<> open();
  void start();
  // Closes all connections and ends the thread. May be called more than once.
  void stop();

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace server::admin
