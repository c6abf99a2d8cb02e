// SPDX-License-Identifier: MIT
//
// TlsStream: a Stream that sends and receives TLS records. receive() and send() perform the
// handshake, step by step as the peer's bytes arrive.
//
// OpenSSL does not access the socket. OpenSSL reads the bytes that one recv() has received, until
// none is left. If the socket does not accept all bytes that OpenSSL writes, the unsent bytes are
// kept in held_:
//
//   socket ──recv──► scratch ──► OpenSSL ──► room           receive()
//   socket ◄──send── held_ ◄──── OpenSSL ◄── bytes          send()
//
// receive() never leaves a whole record inside OpenSSL, because epoll reports only bytes that are
// still in the socket. Inside OpenSSL, receiving never waits for sending, and sending never waits
// for receiving.
//
// Invariants: at most kHeldBytesMax unsent bytes are held. On the server's side, nothing is
// allocated for OpenSSL before the peer's first byte arrives. On the client's side, nothing is
// allocated for OpenSSL before the first send().
// Thread safety: all members may be called from any thread: a replica's stream is written by the
// leader's thread and read by an I/O thread.
// Source: OpenSSL 3.0, ssl(7), BIO_meth_new(3); RFC 8446.
#pragma once

#include <openssl/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "server/base/transport/stream.h"

namespace server {

// Returns the text of an OpenSSL error `code` of a connection. If this side has rejected the
// certificate of the server, the text says why.
std::string connection_error(const SSL* ssl, unsigned long code);

class TlsStream final : public Stream {
 public:
  enum class Side : uint8_t { kServer, kClient };
  enum class Phase : uint8_t { kHandshake, kEstablished, kClosed };

  // Takes ownership of a non-blocking socket.
  TlsStream(std::shared_ptr<SSL_CTX> context, Side side, int descriptor);
  ~TlsStream() override { close(); }

  Outcome receive(std::span<char> first, std::span<char> second, size_t size_max) override;
  Outcome send(std::string_view bytes) override;
  // Closes the stream. Sends close_notify to the peer first, if the handshake is complete, the
  // stream is not broken, and the socket has accepted all earlier bytes.
  void close() override;

  Phase phase() const { return phase_.load(std::memory_order_acquire); }
  // Returns OpenSSL's error if the stream is broken. Empty if the peer just closed the connection.
  std::string failure() const;

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const;
  };
  struct Transfer;  // callbacks through which OpenSSL accesses the socket

  // The functions below require that the caller holds mutex_.
  bool begin();
  bool is_established();
  // Called after an OpenSSL call that failed. Returns whether the stream can continue.
  bool goes_on_after(int result);
  // Sends the encrypted bytes in held_, as far as the socket accepts them. Returns false if the
  // connection has failed.
  bool send_held();
  bool write(std::string_view bytes);
  bool decrypt(std::span<char> first, std::span<char> second, size_t& size);
  Outcome broken();

  static constexpr size_t kHeldBytesMax = size_t{256} << 10;

  mutable std::mutex mutex_;  // this mutex guards all members but phase_

  // Context for the handshake; null once the handshake has begun.
  std::shared_ptr<SSL_CTX> context_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::string_view input_;  // bytes from the socket that OpenSSL has not read yet
  std::string held_;
  std::string failure_;
  int descriptor_;
  const Side side_;
  bool is_broken_ = false;
  std::atomic<Phase> phase_{Phase::kHandshake};
};

}  // namespace server
