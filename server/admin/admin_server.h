// SPDX-License-Identifier: MIT
//
// AdminServer: the admin HTTP port. It owns the sockets, their thread and the site that they serve.
//
// The port has its own thread because answers take milliseconds: clients of the database wait for
// none of them.
//
// Invariants: at most kConnectionsMax connections. A further one replaces the connection that has
// been idle longest, so slow clients block no one.
// Thread safety: open(), start() and stop() from the main thread, in this order.
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

  // `ask` as of Heartbeat, `post` as of WriteCaller.
  AdminServer(Services& services, const Tls& tls, Heartbeat::Ask ask, WriteCaller::Post post);
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  // Binds the configured addresses; without `http-port` there are none. Errors: an address that
  // cannot be bound, unless it is marked as optional.
  core::Result<> open();
  void start();
  // Closes all connections and ends the thread. May be called again.
  void stop();

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace server::admin
