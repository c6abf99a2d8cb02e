// SPDX-License-Identifier: MIT
//
// TlsCaller: a TLS client that verifies the server. It waits for a reply until support::deadline(),
// which is at least a minute.
#pragma once

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/support/listener_fixture.h"
#include "tests/support/tls_authority.h"

namespace server::net {

class TlsCaller {
 public:
  // `identity` is null for a client without a certificate.
  explicit TlsCaller(const TlsAuthority& authority,
                     const TlsAuthority::Identity* identity = nullptr) {
    SSL_CTX_load_verify_locations(context_.get(), authority.certificate_file().c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (identity == nullptr) return;
    SSL_CTX_use_certificate_chain_file(context_.get(), identity->certificate_file.c_str());
    SSL_CTX_use_PrivateKey_file(context_.get(), identity->key_file.c_str(), SSL_FILETYPE_PEM);
  }

  // True if the handshake has succeeded on this side. With TLS 1.3 the server may still reject it.
  bool call(uint16_t port) {
    if (!caller_.call("127.0.0.1", port)) return false;
    tls_.reset(SSL_new(context_.get()));
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), "127.0.0.1");
    SSL_set_fd(tls_.get(), caller_.descriptor());
    return SSL_connect(tls_.get()) == 1;
  }
  bool send(const std::string& bytes) const {
    return SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  // Returns received text; empty at the end of the stream, Caller::kSilence after a timeout.
  std::string hear() const {
    std::array<char, 16384> room{};
    ERR_clear_error();
    const int size = SSL_read(tls_.get(), room.data(), room.size());
    if (size > 0) return std::string(room.data(), static_cast<size_t>(size));
    return SSL_get_error(tls_.get(), size) == SSL_ERROR_WANT_READ ? Caller::kSilence : "";
  }
  // Receives until at least `size` bytes have arrived, the stream ends, or a timeout passes. After
  // a timeout the result ends with Caller::kSilence.
  std::string hear(size_t size) const {
    std::string all;
    while (all.size() < size) {
      const std::string more = hear();
      all += more;
      if (more.empty() || more == Caller::kSilence) break;
    }
    return all;
  }
  std::string ask(const std::string& line) const { return send(line + "\r\n") ? hear() : ""; }
  bool is_served(uint16_t port) { return call(port) && ask("PING") == "+PONG\r\n"; }
  // The socket that carries the TLS connection.
  const Caller& socket() const { return caller_; }

 private:
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{SSL_CTX_new(TLS_client_method()),
                                                                   &SSL_CTX_free};
  Caller caller_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, &SSL_free};
};

}  // namespace server::net
