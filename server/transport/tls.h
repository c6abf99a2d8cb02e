// SPDX-License-Identifier: MIT
//
// Tls: the TLS context in use, which CONFIG SET replaces while connections are open.
//
// Invariants: apply() installs a whole new context or changes nothing; revert() takes the last
// apply() back.
// Thread safety: all members may be called from any thread; apply() and revert() by one at a time.
// Source: TlsContext.
#pragma once

#include <memory>
#include <mutex>

#include "core/result.h"
#include "server/transport/tls_context.h"

namespace server {

class Config;

class Tls {
 public:
  explicit Tls(Config& config) : config_(config) {}
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // Applies the options of TLS now and after each change of them. Errors: those of now.
  core::Result<> follow();
  // Builds the context anew from the configuration and its files, if a port or the replication
  // needs one. Errors: CONFIG SET's text; the log has the cause.
  core::Result<> apply();
  void revert();

  // Null before the first apply() that was needed.
  std::shared_ptr<SSL_CTX> server_context() const;
  std::shared_ptr<SSL_CTX> client_context() const;

 private:
  Config& config_;
  mutable std::mutex mutex_;  // guards the members below
  TlsContext current_;
  TlsContext previous_;  // what the last apply() replaced
};

}  // namespace server
