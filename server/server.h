// SPDX-License-Identifier: MIT
//
// Server: owns everything the process consists of, starts it in order and ends it in reverse.
//
// Invariants: run() returns only when no connection, coroutine or thread of ours is left.
// Thread safety: request_stop() may be called from any thread; the rest from the main thread.
#pragma once

#include <functional>
#include <memory>

#include "core/result.h"
#include "server/config/config.h"
#include "server/process/supervision/supervisor.h"

namespace server {

class Server {
 public:
  // `on_ready` is called once, by any thread, when clients are served all data.
  explicit Server(
      Config& config, std::function<void()> on_ready = [] {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Builds the parts and binds the sockets.
  core::Result<> start();
  // Loads the data and serves until SIGTERM, SIGINT or SHUTDOWN; the process' exit code.
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
