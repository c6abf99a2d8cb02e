// SPDX-License-Identifier: MIT
#include "server/base/transport/tls.h"

#include <utility>

#include "server/base/config/config.h"
#include "server/base/log/log.h"

namespace server {

core::Result<> Tls::follow() {
  config_.on_change(
      {OptionId::kTlsPort, OptionId::kTlsReplication, OptionId::kTlsAuthClients,
       OptionId::kTlsCertFile, OptionId::kTlsKeyFile, OptionId::kTlsKeyFilePass,
       OptionId::kTlsClientCertFile, OptionId::kTlsClientKeyFile, OptionId::kTlsClientKeyFilePass,
       OptionId::kTlsCaCertFile, OptionId::kTlsCaCertDir, OptionId::kTlsDhParamsFile,
       OptionId::kTlsProtocols, OptionId::kTlsCiphers, OptionId::kTlsCipherSuites,
       OptionId::kTlsPreferServerCiphers, OptionId::kTlsSessionCaching,
       OptionId::kTlsSessionCacheSize, OptionId::kTlsSessionCacheTimeout},
      [this] { return apply(); }, [this] { revert(); });
  if (apply()) return {};
  return core::Error{std::string(kTlsNotConfigured)};
}

core::Result<> Tls::apply() {
  const bool serves_http = config_.integer(OptionId::kHttpPort) != 0;
  const bool is_needed = config_.integer(OptionId::kTlsPort) != 0 ||
                         config_.flag(OptionId::kTlsReplication) ||
                         (serves_http && config_.flag(OptionId::kHttpTls));
  TlsContext next;
  if (is_needed) {
    auto made = TlsContext::make(TlsSettings::of(config_));
    if (!made) {
      log_warning("{}", made.error().message);
      const std::scoped_lock lock(mutex_);
      previous_ = current_;
      return core::Error{std::string(kTlsNotUpdated)};
    }
    next = std::move(*made);
  }
  const std::scoped_lock lock(mutex_);
  previous_ = current_;
  if (is_needed) current_ = std::move(next);
  return {};
}

void Tls::revert() {
  const std::scoped_lock lock(mutex_);
  current_ = previous_;
}

std::shared_ptr<SSL_CTX> Tls::server_context() const {
  const std::scoped_lock lock(mutex_);
  return current_.server;
}

std::shared_ptr<SSL_CTX> Tls::client_context() const {
  const std::scoped_lock lock(mutex_);
  return current_.client;
}

}  // namespace server
