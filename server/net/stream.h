// SPDX-License-Identifier: MIT
//
// Stream: a client's bytes, in and out, without waiting. A connection knows no more of its socket;
// one with encryption is another stream.
//
// Invariants: after close(), or once broken, nothing is received and nothing sent.
// Thread safety: none; belongs to one connection.
// Source: recv(2), send(2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace server::net {

class Stream {
 public:
  enum class Status : uint8_t {
    kDone,    // `bytes` were taken, one at least
    kLater,   // none now: wait until the descriptor is ready
    kEnd,     // the peer sends no more
    kBroken,  // of no use any more
  };
  struct Outcome {
    Status status;
    size_t bytes = 0;
  };

  virtual ~Stream() = default;
  virtual Outcome receive(std::span<char> room) = 0;
  // REQUIRES: not empty.
  virtual Outcome send(std::string_view bytes) = 0;
  virtual void close() = 0;
};

class SocketStream final : public Stream {
 public:
  // Takes over a socket that does not block.
  explicit SocketStream(int descriptor) : descriptor_(descriptor) {}
  ~SocketStream() override { close(); }
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  Outcome receive(std::span<char> room) override;
  Outcome send(std::string_view bytes) override;
  void close() override;

 private:
  static constexpr int kClosed = -1;
  int descriptor_;
};

}  // namespace server::net
