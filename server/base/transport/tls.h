// SPDX-License-Identifier: MIT
//
// Tls: the TLS context in use, which CONFIG SET can replace while connections are open.
//
// Invariants: apply() installs a whole new context or changes nothing; revert() undoes the last
// apply().
// Thread safety: all members may be called from any thread; apply() and revert() by one thread at a
// time.
// Source: TlsContext.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>

#include "core/result.h"
#include "server/base/transport/tls_context.h"

namespace server {

class Config;

inline constexpr std::string_view kTlsNotUpdated =
    "Unable to update TLS configuration. Check server logs.";
inline constexpr std::string_view kTlsNotConfigured =
    "Failed to configure TLS. Check logs for more info.";

class Tls {
 public:
  explicit Tls(Config& config) : config_(config) {}

  // Applies the tls-* options now and after each change. Errors: the present options cannot be
  // applied.
  core::Result<> follow();
  // Creates a new context from the tls-* options and their files, if a port uses TLS or
  // `tls-replication` is set. Errors: the text for the client of CONFIG SET. The log has the cause.
  core::Result<> apply();
  void revert();

  // Returns the context for incoming connections; null until apply() has created one.
  std::shared_ptr<SSL_CTX> server_context() const;
  std::shared_ptr<SSL_CTX> client_context() const;

 private:
  Config& config_;
  mutable std::mutex mutex_;  // this mutex guards the members below
  TlsContext current_;
  TlsContext previous_;  // the context that the last apply() replaced
};

}  // namespace server
