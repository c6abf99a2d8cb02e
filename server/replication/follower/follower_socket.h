// SPDX-License-Identifier: MIT
//
// FollowerSocket: a replica's connection to its leader, and Waker, which ends its waiting.
//
// Invariants: no call waits longer than it was told, nor once the waker has been used. What the
// peer does not take is kept up to a bound, then the connection counts as broken.
// Thread safety: a socket belongs to one thread; Waker::wake() may be called from any.
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
  // Returns when woken, at once if that was before, or when the time is over.
  void wait(int64_t timeout_ms);
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

class FollowerSocket {
 public:
  // The waker must outlive it.
  explicit FollowerSocket(Waker& waker) : waker_(waker) {}
  ~FollowerSocket();
  FollowerSocket(const FollowerSocket&) = delete;
  FollowerSocket& operator=(const FollowerSocket&) = delete;

  struct Target {
    std::string host;
    uint16_t port = 0;
    const Tls* tls = nullptr;      // null: without encryption
    std::string source_address{};  // where the link begins; empty for any
  };
  // To the first of the host's addresses that answers.
  core::Result<> connect(const Target& target, int64_t timeout_ms);
  // The bytes, and what is left of earlier ones; what the socket does not take now is kept.
  core::Result<> send(std::string_view bytes);
  // Waits for bytes. Nothing when the time is over or the waker was used.
  // Errors: the connection is gone. REQUIRES: room for more than Stream::kExtraBytesMax.
  core::Result<size_t> receive(std::span<char> out, int64_t timeout_ms);

 private:
  enum class Ready : uint8_t { kNot, kSocket };
  core::Result<> connect_to(const addrinfo& address, const std::string& source_address,
                            int64_t timeout_ms);
  // The handshake, until it is done.
  core::Result<> encrypt(const Tls& tls, int64_t timeout_ms);
  core::Error failed(std::string_view what) const;
  Ready wait_for(short events, int64_t timeout_ms);
  void close();

  Waker& waker_;
  int descriptor_ = -1;             // the stream's, once there is one
  std::shared_ptr<Stream> stream_;  // null before a connection stands
  bool holds_bytes_ = false;        // the stream does
  std::string unsent_;
};

}  // namespace server
