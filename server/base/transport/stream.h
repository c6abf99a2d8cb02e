// SPDX-License-Identifier: MIT
//
// Stream: receives and sends a peer's bytes without blocking. A connection accesses its socket only
// through a Stream. SocketStream transfers plain bytes; TlsStream encrypts them.
//
// Invariants: after close(), or after the stream has broken, it neither receives nor sends bytes.
// receive() leaves no bytes in the stream that another receive() could return at once. So a caller
// may wait until the descriptor is readable, and misses nothing.
// Thread safety: a Stream is not thread-safe, unless its class states otherwise.
// Source: recv(2), readv(2), send(2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace server {

class Stream {
 public:
  enum class Status : uint8_t {
    kDone,    // the stream has transferred `bytes`, at least one
    kLater,   // the call would block: wait until the descriptor is ready
    kEnd,     // the peer will send no more bytes
    kBroken,  // the stream is no longer usable
  };
  struct Outcome {
    Status status;
    size_t bytes = 0;
    // True if accepted bytes are still inside the stream. Wait until the descriptor is writable,
    // then call send() with more bytes or with none.
    bool holds_bytes = false;
  };
  // receive() may return bytes that the stream already holds, in addition to the bytes that it
  // reads from the socket. This is the maximum number of the additional bytes.
  static constexpr size_t kExtraBytesMax = size_t{16} << 10;

  virtual ~Stream() = default;
  // Reads at most `size_max` bytes from the socket. Fills `first`, which may be empty, and then
  // `second`. REQUIRES: their total size is at least size_max + kExtraBytesMax.
  virtual Outcome receive(std::span<char> first, std::span<char> second, size_t size_max) = 0;
  // Sends the bytes. If `bytes` is empty, sends only bytes that are still inside the stream.
  virtual Outcome send(std::string_view bytes) = 0;
  virtual void close() = 0;
};

class SocketStream final : public Stream {
 public:
  static constexpr int kClosed = -1;

  // Takes ownership of a non-blocking socket. kClosed means that there is no socket.
  explicit SocketStream(int descriptor) : descriptor_(descriptor) {}
  ~SocketStream() override { close(); }
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  Outcome receive(std::span<char> first, std::span<char> second, size_t size_max) override;
  Outcome send(std::string_view bytes) override;
  void close() override;

 private:
  int descriptor_;
};

}  // namespace server
