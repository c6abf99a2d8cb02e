// SPDX-License-Identifier: MIT
//
// Stream: a peer's bytes, in and out, without waiting. A connection knows no more of its socket;
// one with encryption is another stream.
//
// Invariants: after close(), or once broken, nothing is received and nothing sent. Bytes that are
// left inside the stream after receive() are of no use before the descriptor is readable again, so
// that waiting for it misses none.
// Thread safety: none, unless the kind of stream says otherwise.
// Source: recv(2), send(2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace server {

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
    // Bytes that were taken wait inside the stream: wait until the descriptor is writable, and
    // send() more, or nothing.
    bool holds_bytes = false;
  };
  // receive() may give so many bytes more than it takes from the socket.
  static constexpr size_t kExtraBytesMax = size_t{16} << 10;

  virtual ~Stream() = default;
  // Takes at most `size_max` bytes from the socket.
  // REQUIRES: room for size_max + kExtraBytesMax bytes.
  virtual Outcome receive(std::span<char> room, size_t size_max) = 0;
  // Bytes may be empty: only what the stream holds is sent.
  virtual Outcome send(std::string_view bytes) = 0;
  virtual void close() = 0;
};

class SocketStream final : public Stream {
 public:
  static constexpr int kClosed = -1;

  // Takes over a socket that does not block; kClosed for none.
  explicit SocketStream(int descriptor) : descriptor_(descriptor) {}
  ~SocketStream() override { close(); }
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  Outcome receive(std::span<char> room, size_t size_max) override;
  Outcome send(std::string_view bytes) override;
  void close() override;

 private:
  int descriptor_;
};

}  // namespace server
