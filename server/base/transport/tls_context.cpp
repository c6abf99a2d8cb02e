// SPDX-License-Identifier: MIT
#include "server/base/transport/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "server/base/config/config.h"
#include "server/base/config/words.h"
#include "server/base/transport/tls_files.h"

namespace server {
namespace {

using ContextPtr = std::shared_ptr<SSL_CTX>;

// Returns the SSL_OP_NO_… bits of the versions that `protocols` does not name. If `protocols` is
// empty, TLS 1.2 and 1.3 are allowed. Returns nullopt if a word is not a version.
std::optional<uint64_t> refused_versions(const std::string& protocols) {
  struct Version {
    std::string_view name;
    uint64_t no;
  };
  constexpr std::array<Version, 4> kVersions = {{{"tlsv1", SSL_OP_NO_TLSv1},
                                                 {"tlsv1.1", SSL_OP_NO_TLSv1_1},
                                                 {"tlsv1.2", SSL_OP_NO_TLSv1_2},
                                                 {"tlsv1.3", SSL_OP_NO_TLSv1_3}}};
  uint64_t refused = 0;
  for (const Version& version : kVersions) refused |= version.no;
  if (protocols.empty()) return refused & ~(SSL_OP_NO_TLSv1_2 | SSL_OP_NO_TLSv1_3);
  for (const std::string& word : split_at_spaces(protocols)) {
    const auto found = std::ranges::find(kVersions, lower_case(word), &Version::name);
    if (found == kVersions.end()) return std::nullopt;
    refused &= ~found->no;
  }
  return refused;
}

core::Result<> load_identity(SSL_CTX* context, const TlsSettings::Identity& identity) {
  const NamedFile certificate(identity.certificate_file,
                              identity.is_client ? "tls-client-cert-file" : "tls-cert-file");
  const NamedFile key(identity.key_file,
                      identity.is_client ? "tls-client-key-file" : "tls-key-file");
  if (auto loaded = use_certificate_chain(context, certificate); !loaded) return loaded;
  return use_private_key(context, key, identity.key_password);
}

core::Result<> load_authorities(SSL_CTX* context, const TlsSettings& settings) {
  core::Result<> loaded;
  if (!settings.ca_file.empty()) {
    loaded = trust_file(context, {settings.ca_file, "tls-ca-cert-file"});
  }
  if (loaded && !settings.ca_directory.empty()) {
    loaded = trust_directory(context, {settings.ca_directory, "tls-ca-cert-dir"});
  }
  return loaded;
}

void set_session_cache(SSL_CTX* context, const TlsSettings& settings) {
  if (!settings.caches_sessions) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context, 0);
    return;
  }
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_SERVER);
  SSL_CTX_sess_set_cache_size(context, static_cast<long>(settings.session_cache_size));
  SSL_CTX_set_timeout(context, static_cast<long>(settings.session_cache_timeout_s));
  constexpr std::string_view kId = "bloomery";
  SSL_CTX_set_session_id_context(context, reinterpret_cast<const unsigned char*>(kId.data()),
                                 kId.size());
}

int verify_mode(TlsAuthClients auth_clients) {
  constexpr std::array kModes = {SSL_VERIFY_NONE, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                                 SSL_VERIFY_PEER};
  return kModes[static_cast<size_t>(auth_clients)];
}

// Creates a context with the settings that server and client contexts have in common.
core::Result<ContextPtr> new_context(const TlsSettings& settings,
                                     const TlsSettings::Identity& identity) {
  ContextPtr owner(SSL_CTX_new(TLS_method()), &SSL_CTX_free);
  SSL_CTX* const context = owner.get();
  if (context == nullptr) return openssl_error("Failed to make a TLS context");
  const auto refused = refused_versions(settings.protocols);
  if (!refused) {
    return core::Error{fmt::format(
        "Invalid tls-protocols specified ({}). Use a combination of 'TLSv1', 'TLSv1.1', "
        "'TLSv1.2' and 'TLSv1.3'.",
        settings.protocols)};
  }
  SSL_CTX_set_options(context, *refused | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                   SSL_OP_SINGLE_DH_USE | SSL_OP_SINGLE_ECDH_USE);
  // SSL_MODE_RELEASE_BUFFERS makes OpenSSL free the buffers of idle connections.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  if (auto loaded = load_identity(context, identity); !loaded) return loaded.error();
  if (auto loaded = load_authorities(context, settings); !loaded) return loaded.error();
  if (!settings.ciphers.empty() &&
      SSL_CTX_set_cipher_list(context, settings.ciphers.c_str()) != 1) {
    return core::Error{fmt::format("Failed to configure ciphers: {}", settings.ciphers)};
  }
  if (!settings.cipher_suites.empty() &&
      SSL_CTX_set_ciphersuites(context, settings.cipher_suites.c_str()) != 1) {
    return core::Error{fmt::format("Failed to configure ciphersuites: {}", settings.cipher_suites)};
  }
  return owner;
}

core::Result<> check_complete(const TlsSettings& settings) {
  if (settings.server.certificate_file.empty()) return core::Error{"No tls-cert-file configured!"};
  if (settings.server.key_file.empty()) return core::Error{"No tls-key-file configured!"};
  const bool verifies = settings.auth_clients != TlsAuthClients::kNo || settings.connects;
  if (verifies && settings.ca_file.empty() && settings.ca_directory.empty()) {
    return core::Error{
        "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients or "
        "tls-replication are enabled!"};
  }
  if (!settings.client.certificate_file.empty() && settings.client.key_file.empty()) {
    return core::Error{"No tls-client-key-file configured!"};
  }
  return {};
}

}  // namespace

TlsSettings TlsSettings::of(const Config& config) {
  TlsSettings settings;
  settings.server = {config.text(OptionId::kTlsCertFile), config.text(OptionId::kTlsKeyFile),
                     config.text(OptionId::kTlsKeyFilePass)};
  settings.client = {config.text(OptionId::kTlsClientCertFile),
                     config.text(OptionId::kTlsClientKeyFile),
                     config.text(OptionId::kTlsClientKeyFilePass), true};
  settings.ca_file = config.text(OptionId::kTlsCaCertFile);
  settings.ca_directory = config.text(OptionId::kTlsCaCertDir);
  settings.auth_clients = TlsAuthClients{config.integer(OptionId::kTlsAuthClients)};
  settings.connects = config.flag(OptionId::kTlsReplication);
  settings.protocols = config.text(OptionId::kTlsProtocols);
  settings.ciphers = config.text(OptionId::kTlsCiphers);
  settings.cipher_suites = config.text(OptionId::kTlsCipherSuites);
  settings.dh_params_file = config.text(OptionId::kTlsDhParamsFile);
  settings.prefers_server_ciphers = config.flag(OptionId::kTlsPreferServerCiphers);
  settings.caches_sessions = config.flag(OptionId::kTlsSessionCaching);
  settings.session_cache_size = config.integer(OptionId::kTlsSessionCacheSize);
  settings.session_cache_timeout_s = config.integer(OptionId::kTlsSessionCacheTimeout);
  return settings;
}

core::Result<TlsContext> TlsContext::make(const TlsSettings& settings) {
  ERR_clear_error();
  if (auto complete = check_complete(settings); !complete) return complete.error();
  auto server = new_context(settings, settings.server);
  if (!server) return server.error();
  SSL_CTX* const context = server->get();
  SSL_CTX_set_verify(context, verify_mode(settings.auth_clients), nullptr);
  set_session_cache(context, settings);
  if (settings.prefers_server_ciphers) {
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
  }
  if (!settings.dh_params_file.empty()) {
    const NamedFile file(settings.dh_params_file, "tls-dh-params-file");
    if (auto loaded = use_dh_parameters(context, file); !loaded) return loaded.error();
  }
  const bool has_own = !settings.client.certificate_file.empty();
  auto client = new_context(settings, has_own ? settings.client : settings.server);
  if (!client) return client.error();
  SSL_CTX_set_verify(client->get(), SSL_VERIFY_PEER, nullptr);
  return TlsContext{std::move(*server), std::move(*client)};
}

}  // namespace server
