// SPDX-License-Identifier: MIT
//
// ClientSocket: a connection of one thread to another server, by TCP or a unix socket, with TLS or
// without.
//
// Invariants: apart from the lookup of a host name, no wait is longer than its timeout, and no call
// waits after Waker::wake(). Bytes that the peer does not accept are buffered by send() up to a
// bound; beyond it the connection counts as broken.
// Thread safety: a socket belongs to one thread; Waker::wake() may be called from any thread.
// Source: connect(2), poll(2).
#pragma once

#include <openssl/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "server/base/transport/stream.h"

struct sockaddr;

namespace server {

class Waker;

// WaitLimit: how long a function may wait. No single wait lasts longer than `step`, and no wait
// lasts beyond `end`.
struct WaitLimit {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  WaitLimit(Milliseconds longest, Clock::time_point deadline = Clock::time_point::max())
      : step(longest), end(deadline) {}
  // Returns the limit of a wait that begins now.
  Milliseconds now() const {
    return std::min(step, std::chrono::floor<Milliseconds>(end - Clock::now()));
  }

  Milliseconds step;
  Clock::time_point end;
};

class ClientSocket {
 public:
  using Milliseconds = std::chrono::milliseconds;

  struct Target {
    std::string host{};
    uint16_t port = 0;
    std::string path{};  // path of a unix socket, which is used instead of the host if not empty
    bool uses_tls = false;
    std::shared_ptr<SSL_CTX> tls{};  // TLS context, if uses_tls; null: TLS is not configured
    std::string source_address{};    // local address of the connection; empty: any
    // True if the server must be on this machine. Then only the first of the host's addresses is
    // tried, and connect() fails unless it is an address of this machine.
    bool is_local = false;
  };

  // `waker` ends the waits of the socket if it is not null. It must outlive the socket.
  explicit ClientSocket(Waker* waker = nullptr) : waker_(waker) {}

  // Connects to the first of the host's addresses that answers, and completes the TLS handshake.
  // The limit's `step` applies to each address, and to each handshake. Errors: the reason, without
  // the target's name.
  core::Result<> connect(const Target& target, const WaitLimit& limit);
  // First sends the bytes that are still buffered, then `bytes`. Buffers those that the socket does
  // not accept now.
  core::Result<> send(std::string_view bytes);
  // Sends all bytes. Waits while the socket accepts none.
  core::Result<> send_all(std::string_view bytes, const WaitLimit& limit);
  // Waits for bytes and returns their number. Returns 0 after the timeout or a wake(). May also
  // return 0 earlier, if a TLS record is not complete. Errors: the connection is closed. REQUIRES:
  // `out` has room for more than Stream::kExtraBytesMax bytes.
  core::Result<size_t> receive(std::span<char> out, Milliseconds timeout);
  // Waits until the socket is readable. Returns false after the timeout or a wake().
  bool wait_for_input(Milliseconds timeout) const;

 private:
  core::Result<> connect_to_path(const Target& target, const WaitLimit& limit);
  core::Result<> connect_to(const sockaddr& address, size_t size, const Target& target,
                            const WaitLimit& limit);
  core::Result<> encrypt(Milliseconds timeout);
  core::Error failed() const;
  bool wait_for(short events, Milliseconds timeout) const;

  Waker* waker_;
  int descriptor_ = -1;             // descriptor of the socket, which stream_ owns
  std::unique_ptr<Stream> stream_;  // null until a socket exists
  bool holds_bytes_ = false;        // true if the stream holds unsent bytes
  std::string unsent_;
};

}  // namespace server
