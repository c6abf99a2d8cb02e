// SPDX-License-Identifier: MIT
//
// AdminServer: the admin HTTP port: sockets on a thread of its own, and the site that they show.
//
// A thread of its own, because answers take milliseconds: clients of the database wait for none.
//
// Invariants: at most kConnectionsMax connections; a further one takes the place of that which has
// got on least recently, so slow clients hold up nobody.
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
