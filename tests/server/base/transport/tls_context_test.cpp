// SPDX-License-Identifier: MIT
#include "server/base/transport/tls_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/base/config/config.h"
#include "server/base/transport/tls_files.h"
#include "tests/support/tls_identity.h"

namespace server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class TlsContextTest : public testing::Test {
 protected:
  TlsContextTest() {
    settings_.server = {identity_.certificate_file(), identity_.key_file(), ""};
    settings_.ca_file = identity_.certificate_file();
  }
  // Returns the error, or "".
  std::string error() const {
    const auto made = TlsContext::make(settings_);
    return made ? "" : made.error().message;
  }
  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = identity_.directory() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  TlsIdentity identity_;
  TlsSettings settings_;
};

TEST_F(TlsContextTest, NamesTheMissingFile) {
  EXPECT_EQ(error(), "");
  settings_.ca_file.clear();
  EXPECT_NE(error().find("tls-ca-cert-file"), std::string::npos) << error();
  settings_.auth_clients = TlsAuthClients::kNo;
  EXPECT_EQ(error(), "");
  settings_.connects = true;
  EXPECT_NE(error().find("tls-ca-cert-file"), std::string::npos) << "a leader is verified";
  settings_.server.key_file.clear();
  EXPECT_THAT(error(), HasSubstr("tls-key-file"));
  settings_.server.certificate_file.clear();
  EXPECT_THAT(error(), HasSubstr("tls-cert-file"));
}

TEST_F(TlsContextTest, FilesThatCannotBeUsedAreNamed) {
  const std::string garbage = file("garbage", "no PEM");
  for (std::string* const name : {&settings_.server.certificate_file, &settings_.server.key_file,
                                  &settings_.ca_file, &settings_.dh_params_file}) {
    const std::string good = *name;
    for (const std::string& bad : {garbage, identity_.directory() + "/absent"}) {
      *name = bad;
      EXPECT_NE(error().find(bad), std::string::npos) << error();
    }
    *name = good;
  }
  EXPECT_EQ(error(), "");
}

TEST_F(TlsContextTest, ReportsWhyAFileCannotBeRead) {
  const std::string absent = identity_.directory() + "/absent";
  const std::string loop = identity_.directory() + "/loop";
  std::filesystem::create_symlink(loop, loop);
  for (std::string* const name : {&settings_.server.certificate_file, &settings_.server.key_file,
                                  &settings_.ca_file, &settings_.dh_params_file}) {
    const std::string good = *name;
    *name = absent;
    EXPECT_THAT(error(), EndsWith(": No such file or directory"));
    *name = loop;
    EXPECT_THAT(error(), EndsWith(": Too many levels of symbolic links"));
    *name = good;
  }
  settings_.server.certificate_file = absent;
  EXPECT_EQ(error(), std::string(kCertificateFails) + ": can't open '" + absent +
                         "': No such file or directory");
}

TEST_F(TlsContextTest, ReportsWhyAFileIsInvalid) {
  settings_.server.certificate_file = file("garbage", "no PEM");
  EXPECT_THAT(error(), EndsWith(":no start line"));
  settings_.server.certificate_file = identity_.certificate_file();
  identity_.renew("secret");
  EXPECT_THAT(error(), EndsWith(":bad password read"));
}

TEST_F(TlsContextTest, AKeyOfAnotherCertificateIsRefused) {
  const TlsIdentity other;
  settings_.server.key_file = other.key_file();
  EXPECT_NE(error().find("key values mismatch"), std::string::npos) << error();
}

TEST_F(TlsContextTest, AKeyMayHaveAPassphrase) {
  identity_.renew("secret");
  EXPECT_THAT(error(), HasSubstr(kPrivateKeyFails));
  settings_.server.key_password = "wrong";
  EXPECT_NE(error(), "");
  settings_.server.key_password = "secret";
  EXPECT_EQ(error(), "");
}

TEST_F(TlsContextTest, VersionsAndCiphersAreChecked) {
  const auto refused = [this] {
    return SSL_CTX_get_options(TlsContext::make(settings_)->server.get()) &
           (SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_TLSv1_2 | SSL_OP_NO_TLSv1_3);
  };
  EXPECT_EQ(refused(), SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1);
  settings_.protocols = "tlsv1.3";
  EXPECT_EQ(refused(), SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_TLSv1_2);
  settings_.protocols = "TLSv1.1 TLSv1.2";
  EXPECT_EQ(refused(), SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_3);
  settings_.protocols = "TLSv1.2 SSLv3";
  EXPECT_TRUE(error().starts_with("Invalid tls-protocols specified (TLSv1.2 SSLv3)")) << error();
  settings_.protocols.clear();
  settings_.ciphers = "UNKNOWN-CIPHER";
  EXPECT_EQ(error(), "Failed to configure ciphers: UNKNOWN-CIPHER");
  settings_.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256";
  settings_.cipher_suites = "TLS_NONE";
  EXPECT_EQ(error(), "Failed to configure ciphersuites: TLS_NONE");
  settings_.cipher_suites = "TLS_AES_128_GCM_SHA256";
  EXPECT_EQ(error(), "");
}

TEST_F(TlsContextTest, ClientsAreAskedAsTheOptionSays) {
  const auto mode = [this] {
    return SSL_CTX_get_verify_mode(TlsContext::make(settings_)->server.get());
  };
  EXPECT_EQ(mode(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT);
  settings_.auth_clients = TlsAuthClients::kOptional;
  EXPECT_EQ(mode(), SSL_VERIFY_PEER);
  settings_.auth_clients = TlsAuthClients::kNo;
  EXPECT_EQ(mode(), SSL_VERIFY_NONE);
  EXPECT_EQ(SSL_CTX_get_verify_mode(TlsContext::make(settings_)->client.get()), SSL_VERIFY_PEER);
}

TEST_F(TlsContextTest, SessionsAreRememberedAsTheOptionsSay) {
  settings_.session_cache_size = 7;
  settings_.session_cache_timeout_s = 11;
  auto context = TlsContext::make(settings_)->server;
  EXPECT_EQ(SSL_CTX_get_session_cache_mode(context.get()), SSL_SESS_CACHE_SERVER);
  EXPECT_EQ(SSL_CTX_sess_get_cache_size(context.get()), 7);
  EXPECT_EQ(SSL_CTX_get_timeout(context.get()), 11);
  settings_.caches_sessions = false;
  context = TlsContext::make(settings_)->server;
  EXPECT_EQ(SSL_CTX_get_session_cache_mode(context.get()), SSL_SESS_CACHE_OFF);
  EXPECT_EQ(SSL_CTX_get_num_tickets(context.get()), 0u);
}

TEST_F(TlsContextTest, RenegotiationAndCompressionAreOff) {
  const auto options = SSL_CTX_get_options(TlsContext::make(settings_)->server.get());
  EXPECT_NE(options & SSL_OP_NO_RENEGOTIATION, 0u);
  EXPECT_NE(options & SSL_OP_NO_COMPRESSION, 0u);
}

TEST(TlsSettings, AreTheOptions) {
  Config config;
  const std::vector<NamedValue> pairs = {{"tls-cert-file", "a"},
                                         {"tls-key-file", "b"},
                                         {"tls-key-file-pass", "c"},
                                         {"tls-client-cert-file", "d"},
                                         {"tls-client-key-file", "e"},
                                         {"tls-client-key-file-pass", "f"},
                                         {"tls-ca-cert-file", "g"},
                                         {"tls-ca-cert-dir", "h"},
                                         {"tls-auth-clients", "optional"},
                                         {"tls-replication", "yes"},
                                         {"tls-protocols", "TLSv1.3"},
                                         {"tls-ciphers", "i"},
                                         {"tls-ciphersuites", "j"},
                                         {"tls-dh-params-file", "k"},
                                         {"tls-prefer-server-ciphers", "yes"},
                                         {"tls-session-caching", "no"},
                                         {"tls-session-cache-size", "5"},
                                         {"tls-session-cache-timeout", "6"}};
  ASSERT_TRUE(config.set(pairs));
  const TlsSettings settings = TlsSettings::of(config);
  EXPECT_EQ(settings.server.certificate_file + settings.server.key_file +
                settings.server.key_password + settings.client.certificate_file +
                settings.client.key_file + settings.client.key_password + settings.ca_file +
                settings.ca_directory + settings.ciphers + settings.cipher_suites +
                settings.dh_params_file,
            "abcdefghijk");
  EXPECT_FALSE(settings.server.is_client);
  EXPECT_TRUE(settings.client.is_client);
  EXPECT_EQ(settings.auth_clients, TlsAuthClients::kOptional);
  EXPECT_EQ(settings.protocols, "TLSv1.3");
  EXPECT_TRUE(settings.connects && settings.prefers_server_ciphers && !settings.caches_sessions);
  EXPECT_EQ(settings.session_cache_size, 5);
  EXPECT_EQ(settings.session_cache_timeout_s, 6);
}

}  // namespace
}  // namespace server
