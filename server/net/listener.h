// SPDX-License-Identifier: MIT
//
// Listener: accepts connections on the configured addresses and deals them out to the I/O threads.
//
// Invariants: a unix socket is never reachable with wider permissions than configured, not even
// between bind and chmod; running out of descriptors pauses accepting and leaves clients served.
// Thread safety: open() before the threads run; rebind() from any thread afterwards; the rest on
// I/O thread 0. Source: Redis' bind syntax ("*", "-::1" for an optional address).
#pragma once

#include <memory>
#include <mutex>
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
  // CONFIG SET of `bind` or `port`: listens where they say now, or else where it did before.
  core::Result<> rebind();
  void close();

 private:
  // A listening socket.
  struct Endpoint final : Readiness::Watcher {
    Endpoint(Listener& listener, int socket, std::string tcp_name);
    ~Endpoint() { close(); }
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;
    void on_ready(uint32_t events) override;
    void watch();
    void close();

    Listener& owner;
    int descriptor;              // -1 once closed
    const std::string tcp_name;  // "address:port" as configured; empty for a unix socket
    bool is_watched = false;
    bool is_retired = false;  // accepts no more; thread 0 closes it soon
    Timer pause;
  };
  using Endpoints = std::vector<std::unique_ptr<Endpoint>>;

  // What the configuration asks for and `endpoints` lacks is added to it.
  core::Result<> open_tcp_endpoints(Endpoints& endpoints);
  core::Result<std::unique_ptr<Endpoint>> open_tcp(const std::string& address, int port);
  core::Result<> open_unix(const std::string& path, unsigned permissions);
  // Accepts all that wait; false when the process has no descriptors left.
  bool accept_waiting(Endpoint& endpoint);
  void admit(int descriptor, bool is_unix);
  // The reply for a client that must not be served; empty for the others.
  std::string refusal(int descriptor, bool is_unix) const;

  IoThreads& threads_;
  Services& services_;
  std::mutex mutex_;  // guards endpoints_ and what they hold
  Endpoints endpoints_;
  std::string unix_path_;
};

}  // namespace server::net
