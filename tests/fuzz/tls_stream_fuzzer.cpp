// SPDX-License-Identifier: MIT
//
// Feeds bytes of a possible peer to a server's TlsStream. The bytes are arbitrary from the start,
// arbitrary after a real handshake, or a real client's bytes with changes. Aborts if the stream
// returns plain text that no one sent, or continues after an error. Also aborts if bytes remain
// inside the stream while the socket is not readable.
//
// The first byte of an input chooses the mode, the second the number of bytes per read.
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/transport/tls_stream.h"

namespace {

using server::Stream;
using server::TlsStream;
using ContextPtr = std::shared_ptr<SSL_CTX>;

constexpr std::string_view kSecret = "what the client says";

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

ContextPtr new_context(bool is_server) {
  ContextPtr context(SSL_CTX_new(TLS_method()), &SSL_CTX_free);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  if (!is_server) return context;
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86'400);
  X509_set_pubkey(certificate, key);
  require(X509_sign(certificate, key, EVP_sha256()) > 0, "no certificate");
  require(SSL_CTX_use_certificate(context.get(), certificate) == 1, "no certificate");
  require(SSL_CTX_use_PrivateKey(context.get(), key) == 1, "no key");
  X509_free(certificate);
  EVP_PKEY_free(key);
  // Requests a client certificate, so that certificates are parsed too.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

// A server's stream and the other end of its socket.
class Peer {
 public:
  explicit Peer(size_t read_size) : read_size_(read_size) {
    static const ContextPtr context = new_context(true);
    std::array<int, 2> both{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both.data()) == 0, "no sockets");
    near_ = both[0];
    far_ = both[1];
    stream_ = std::make_unique<TlsStream>(context, TlsStream::Side::kServer, near_);
  }
  ~Peer() { ::close(far_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  int far() const { return far_; }

  void say(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t size = ::send(far_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      // send() fails if the socket is shut down, or if it is full because a broken stream no longer
      // reads.
      if (size <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(size));
      listen();
    }
  }

  // Returns all plain text received so far.
  const std::string& heard() const { return heard_; }

 private:
  bool is_readable() const {
    pollfd entry{near_, POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  }
  // Receives into two buffers, which are the parts of `room`.
  Stream::Outcome receive(std::span<char> room) {
    const size_t first_size = read_size_ / 2;
    return stream_->receive(room.first(first_size), room.subspan(first_size), read_size_);
  }
  void listen() {
    std::string room(read_size_ + Stream::kExtraBytesMax, '\0');
    while (is_readable() && !has_ended_) {
      const auto outcome = receive(room);
      require(outcome.bytes <= room.size(), "more than there is room for");
      heard_.append(room, 0, outcome.bytes);
      has_ended_ =
          outcome.status == Stream::Status::kBroken || outcome.status == Stream::Status::kEnd;
      is_broken_ |= outcome.status == Stream::Status::kBroken;
    }
    if (is_broken_) {
      require(receive(room).status == Stream::Status::kBroken, "it goes on");
      require(stream_->send("x").status == Stream::Status::kBroken, "it sends on");
    } else if (!has_ended_) {
      require(receive(room).bytes == 0, "something was left inside");
      (void)stream_->send("");
    }
  }

  const size_t read_size_;
  int near_ = -1;  // the socket of the stream under test
  int far_ = -1;
  std::unique_ptr<TlsStream> stream_;
  std::string heard_;
  bool has_ended_ = false;
  bool is_broken_ = false;
};

// A client whose handshake passes through `change`, which may modify each piece it sends.
template <class Change>
void speak(Peer& peer, Change&& change) {
  static const ContextPtr context = new_context(false);
  std::array<int, 2> both{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both.data()) == 0, "no sockets");
  TlsStream client(context, TlsStream::Side::kClient, both[0]);
  std::vector<char> piece(65'536);
  std::vector<char> room(piece.size() + Stream::kExtraBytesMax);
  (void)client.send("");
  for (int round = 0; round < 4; ++round) {
    if (client.phase() == TlsStream::Phase::kEstablished) (void)client.send(kSecret);
    const ssize_t said = ::recv(both[1], piece.data(), piece.size(), 0);
    if (said > 0) {
      std::string bytes(piece.data(), static_cast<size_t>(said));
      change(bytes);
      peer.say(bytes);
    }
    const ssize_t answered = ::recv(peer.far(), piece.data(), piece.size(), 0);
    if (answered <= 0) break;
    (void)!::write(both[1], piece.data(), static_cast<size_t>(answered));
    if (client.receive({}, room, piece.size()).status == Stream::Status::kBroken) break;
  }
  ::close(both[1]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t read_size = data[1] == 0 ? 65'536 : data[1];
  Peer peer(read_size);
  // Most inputs skip the handshake, because it takes many times as long as the remaining work.
  const unsigned mode = data[0] % 32;
  switch (std::min(mode, 2U)) {
    case 2:
      peer.say(bytes);
      require(peer.heard().empty(), "plain text without a handshake");
      break;
    case 0:
      speak(peer, [](std::string&) {});
      require(peer.heard().starts_with(kSecret), "an honest client was not heard");
      peer.say(bytes);
      require(peer.heard().size() % kSecret.size() == 0, "plain text that no peer has sent");
      break;
    default:
      // Three bytes per change: two for the position, and one with the bits to invert.
      size_t offset = 0;
      speak(peer, [&](std::string& piece) {
        for (size_t i = 0; i + 2 < bytes.size(); i += 3) {
          const size_t at =
              static_cast<uint8_t>(bytes[i]) * 256U + static_cast<uint8_t>(bytes[i + 1]);
          if (at >= offset && at - offset < piece.size()) piece[at - offset] ^= bytes[i + 2];
        }
        offset += piece.size();
      });
      for (size_t i = 0; i < peer.heard().size(); ++i) {
        require(peer.heard()[i] == kSecret[i % kSecret.size()], "plain text that no peer has sent");
      }
  }
  return 0;
}
