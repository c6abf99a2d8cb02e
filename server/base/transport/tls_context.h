// SPDX-License-Identifier: MIT
//
// TlsContext: the tls-* options as OpenSSL contexts, one for incoming connections and one for
// outgoing ones.
//
// Invariants: contexts are immutable; existing connections keep theirs after a reload.
// Renegotiation and compression are off. The server's side requests certificates as
// tls-auth-clients says. The client's side always verifies the server's certificate chain. As in
// Redis, it does not verify the host name.
// Thread safety: settings and contexts are values that any thread may share.
// Source: OpenSSL 3.0, SSL_CTX_new(3); redis.conf 7.0, "TLS/SSL".
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"

namespace server {

class Config;

// The values of tls-auth-clients, numbered as in the option table.
enum class TlsAuthClients : int64_t { kNo, kYes, kOptional };

struct TlsSettings {
  struct Identity {
    std::string certificate_file = {};  // path of the file with the certificate and its chain
    std::string key_file = {};
    std::string key_password = {};
    // True if the files are those of tls-client-cert-file and tls-client-key-file.
    bool is_client = false;
  };

  static TlsSettings of(const Config& config);

  Identity server;
  Identity client;  // identity for outgoing connections; without a certificate, `server` is used
  std::string ca_file;
  std::string ca_directory;
  TlsAuthClients auth_clients = TlsAuthClients::kYes;
  bool connects = false;  // true if this server connects to a leader, whose certificate is verified
  std::string protocols;  // allowed protocol versions; empty means TLS 1.2 and 1.3
  std::string ciphers;
  std::string cipher_suites;
  std::string dh_params_file;
  bool prefers_server_ciphers = false;
  bool caches_sessions = true;
  int64_t session_cache_size = 0;
  int64_t session_cache_timeout_s = 0;
};

struct TlsContext {
  std::shared_ptr<SSL_CTX> server;
  std::shared_ptr<SSL_CTX> client;

  // Reads the files that `settings` names. Errors: a line for the log, with the name of the file.
  static core::Result<TlsContext> make(const TlsSettings& settings);
};

}  // namespace server
