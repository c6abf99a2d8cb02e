// SPDX-License-Identifier: MIT
//
// Loads the PEM files of the tls-* options: certificates, keys, authorities, parameters.
//
// Invariants: every file is opened by persistence::open_file(), so a FIFO is refused at once.
// OpenSSL's own functions would open the path, and would wait until a process writes to the FIFO.
// Thread safety: one thread at a time may fill a context. Handshakes, which look up authorities in
// directories, may run on any thread.
// Source: OpenSSL 3.0, SSL_CTX_use_certificate(3), X509_LOOKUP_hash_dir(3).
#pragma once

#include <openssl/types.h>

#include <string>
#include <string_view>

#include "core/result.h"
#include "persistence/files/open_file.h"

namespace server {

using persistence::NamedFile;

// Error texts are those of Redis. Each names the step that failed.
inline constexpr std::string_view kCertificateFails = "Failed to load certificate";
inline constexpr std::string_view kPrivateKeyFails = "Failed to load private key";
inline constexpr std::string_view kDhParametersFail = "Failed to load DH params";
inline constexpr std::string_view kAuthoritiesFail = "Failed to load CA certificates";

// The errors of all functions are lines for the log, without an error code. They name the failed
// step, the path and the reason.

// Loads the certificate, followed by the certificates of the authorities that signed it.
core::Result<> use_certificate_chain(SSL_CTX* context, const NamedFile& file);
// Loads the private key. `password` decrypts the key. If `password` is empty, the key must not be
// encrypted.
core::Result<> use_private_key(SSL_CTX* context, const NamedFile& file,
                               const std::string& password);
core::Result<> use_dh_parameters(SSL_CTX* context, const NamedFile& file);
// Trusts the certificates of the authorities in a file.
core::Result<> trust_file(SSL_CTX* context, const NamedFile& file);
// Trusts the authorities of directories, separated by ':'. A handshake reads the files that it
// needs, by the names that `openssl rehash` creates, such as 9d66eef0.0. So authorities whose files
// are added later are also trusted.
core::Result<> trust_directory(SSL_CTX* context, const NamedFile& directories);

// Returns `what`, followed by the first OpenSSL error of this thread.
core::Error openssl_error(std::string_view what);

}  // namespace server
