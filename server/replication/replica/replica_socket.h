// SPDX-License-Identifier: MIT
//
// ReplicaSocket: a replica's connection to its leader. Waker: ends the wait of a thread from
// another thread.
//
// Invariants: no call waits longer than its timeout, and no call waits after Waker::wake(). Bytes
// that the peer does not accept are buffered up to a bound; beyond it the connection counts as
// broken.
// Thread safety: a socket belongs to one thread; Waker::wake() may be called from any thread.
// Source: connect(2), poll(2), eventfd(2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

struct addrinfo;

namespace server {

class Stream;
class Tls;

class Waker {
 public:
  Waker();
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  void wake();
  // Waits for the timeout or for wake(). Returns at once if wake() was called before.
  void wait(int64_t timeout_ms);
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

class ReplicaSocket {
 public:
  // The waker must outlive the socket.
  explicit ReplicaSocket(Waker& waker) : waker_(waker) {}
  ~ReplicaSocket();
  ReplicaSocket(const ReplicaSocket&) = delete;
  ReplicaSocket& operator=(const ReplicaSocket&) = delete;

  struct Target {
    std::string host;
    uint16_t port = 0;
    const Tls* tls = nullptr;      // settings of TLS; null if the link is not encrypted
    std::string source_address{};  // local address of the link; empty: any
  };
  // Connects to the first of the host's addresses that answers.
  core::Result<> connect(const Target& target, int64_t timeout_ms);
  // Sends the bytes after those that are still buffered. Buffers the bytes that the socket does not
  // accept now.
  core::Result<> send(std::string_view bytes);
  // Waits for bytes and returns their number, or 0 after the timeout or a wake(). Errors: the
  // connection is closed. REQUIRES: `out` has room for more than Stream::kExtraBytesMax bytes.
  core::Result<size_t> receive(std::span<char> out, int64_t timeout_ms);

 private:
  enum class Ready : uint8_t { kNot, kSocket };
  core::Result<> connect_to(const addrinfo& address, const std::string& source_address,
                            int64_t timeout_ms);
  // Completes the TLS handshake.
  core::Result<> encrypt(const Tls& tls, int64_t timeout_ms);
  core::Error failed(std::string_view what) const;
  Ready wait_for(short events, int64_t timeout_ms);
  void close();

  Waker& waker_;
  int descriptor_ = -1;             // the stream owns the descriptor once the stream exists
  std::shared_ptr<Stream> stream_;  // stream of the connection; null until it is established
  bool holds_bytes_ = false;        // true if the stream holds unsent bytes
  std::string unsent_;
};

}  // namespace server
