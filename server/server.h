// SPDX-License-Identifier: MIT
//
// Server: owns all parts of the process. Starts the parts in order, and stops them in reverse
// order.
//
// Invariants: run() returns only when all connections have ended, and all threads except the
// reclaimer's and those of MIGRATE.
// Thread safety: any thread may call request_stop(). Only the main thread may call the other
// members.
#pragma once

#include <functional>
#include <memory>

#include "core/result.h"
#include "server/base/config/config.h"
#include "server/base/process/supervisor.h"

namespace server {

class Server {
 public:
  // `on_ready` is called once, on any thread, when all data are loaded and clients are served.
  explicit Server(
      Config& config, std::function<void()> on_ready = [] {});
  ~Server();

  // Creates the parts of the server, and binds the sockets.
  core::Result<> start();
  // Loads the data and serves clients until SIGTERM, SIGINT or SHUTDOWN. Returns the process' exit
  // code.
  int run();
  void request_stop();

 private:
  struct Parts;
  void recover();
  void await_signal();
  void on_signal(int signal);
  void shut_down(int signal);
  void stop();
  Config& config_;
  const std::function<void()> on_ready_;
  Supervisor supervisor_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace server
