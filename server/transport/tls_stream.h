// SPDX-License-Identifier: MIT
//
// TlsStream: a Stream whose bytes travel in TLS records. The handshake happens inside of receive()
// and send(), step by step as the peer's bytes come.
//
// OpenSSL does not see the socket. It reads from the bytes of one recv(), until none is left, and
// what it writes and the socket does not take is kept here:
//
//   socket ──recv──► scratch ──► OpenSSL ──► room           receive()
//   socket ◄──send── held_ ◄──── OpenSSL ◄── bytes          send()
//
// So receive() never leaves a whole record behind, of which the kernel would not tell, and neither
// direction ever waits for the other inside of OpenSSL.
//
// Invariants: at most kHeldBytesMax are held. Nothing is allocated for OpenSSL before the peer's
// first byte has come, or, as the client, before the first send().
// Thread safety: all members may be called from any thread: a replica's stream is written by the
// leader's thread and read by an I/O thread.
// Source: OpenSSL 3.0, ssl(7), BIO_meth_new(3); RFC 8446.
#pragma once

#include <openssl/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "server/transport/stream.h"

namespace server {

class TlsStream final : public Stream {
 public:
  enum class Side : uint8_t { kServer, kClient };
  enum class Phase : uint8_t { kHandshake, kEstablished, kClosed };

  // Takes over a socket that does not block.
  TlsStream(std::shared_ptr<SSL_CTX> context, Side side, int descriptor);
  ~TlsStream() override { close(); }
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  Outcome receive(std::span<char> room, size_t size_max) override;
  Outcome send(std::string_view bytes) override;
  // Tells the peer, unless the stream is broken.
  void close() override;

  Phase phase() const { return phase_.load(std::memory_order_acquire); }
  // Why it is broken, in OpenSSL's words; empty when the peer has just gone.
  std::string failure() const;

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const;
  };
  struct Transfer;  // the BIO's callbacks

  // REQUIRES for all: mutex_.
  bool begin();
  bool is_established();
  // The result of an OpenSSL call that did not succeed: whether the stream goes on.
  bool goes_on_after(int result);
  // Sends what is held; false when the socket has gone.
  bool send_held();
  bool write(std::string_view bytes);
  bool decrypt(std::span<char> room, size_t& size);
  Outcome broken();

  static constexpr size_t kHeldBytesMax = size_t{256} << 10;

  mutable std::mutex mutex_;          // guards all but phase_
  std::shared_ptr<SSL_CTX> context_;  // until the handshake begins
  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::string_view input_;  // of the present receive()
  std::string held_;
  std::string failure_;
  int descriptor_;
  const Side side_;
  bool is_broken_ = false;
  std::atomic<Phase> phase_{Phase::kHandshake};
};

}  // namespace server
