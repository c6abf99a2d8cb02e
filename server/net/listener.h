// SPDX-License-Identifier: MIT
//
// Listener: accepts connections on the configured addresses and deals them out to the I/O threads.
//
// Invariants: a unix socket is never reachable with wider permissions than configured, not even
// between bind and chmod; running out of descriptors pauses accepting and leaves clients served.
// Thread safety: open() before the threads run; the rest on I/O thread 0.
// Source: Redis' bind syntax ("*", "-::1" for an optional address).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/commands/services.h"
#include "server/net/io_threads.h"

namespace server::net {

class Listener {
 public:
  Listener(IoThreads& threads, Services& services) : threads_(threads), services_(services) {}
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Errors: an address that cannot be bound (unless marked optional), a path that is taken.
  core::Result<> open();
  // Begins to accept.
  void start();
  void close();

 private:
  // A listening socket.
  struct Endpoint final : Readiness::Watcher {
    Endpoint(Listener& listener, int socket, bool unix_socket);
    ~Endpoint() { close(); }
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;
    void on_ready(uint32_t events) override;
    void close();

    Listener& owner;
    int descriptor;  // -1 once closed
    const bool is_unix;
    Timer pause;
  };

  core::Result<> open_tcp(const std::string& address, int port);
  core::Result<> open_unix(const std::string& path, unsigned permissions);
  // Accepts all that wait; false when the process has no descriptors left.
  bool accept_waiting(Endpoint& endpoint);
  void admit(int descriptor, bool is_unix);
  // The reply for a client that must not be served; empty for the others.
  std::string refusal(int descriptor, bool is_unix) const;

  IoThreads& threads_;
  Services& services_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::string unix_path_;
};

}  // namespace server::net
