// SPDX-License-Identifier: MIT
#include "server/base/transport/tls.h"

#include <gtest/gtest.h>

#include "server/base/config/config.h"
#include "tests/support/set_option.h"
#include "tests/support/tls_identity.h"

namespace server {
namespace {

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    config_.on_change(
        {OptionId::kTlsPort, OptionId::kTlsCertFile, OptionId::kTlsKeyFile,
         OptionId::kTlsAuthClients},
        [this] {
          ++applied_;
          return tls_.apply();
        },
        [this] { tls_.revert(); });
  }
  bool set(const std::vector<NamedValue>& pairs) { return config_.set(pairs).has_value(); }
  bool turn_on() {
    return set({{"tls-auth-clients", "no"},
                {"tls-cert-file", identity_.certificate_file()},
                {"tls-key-file", identity_.key_file()},
                {"tls-port", "1"}});
  }

  TlsIdentity identity_;
  Config config_;
  Tls tls_{config_};
  int applied_ = 0;
};

TEST_F(TlsTest, NothingIsReadBeforeItIsNeeded) {
  EXPECT_TRUE(set({{"tls-cert-file", "absent"}}));
  EXPECT_EQ(tls_.server_context(), nullptr);
  EXPECT_FALSE(set({{"tls-port", "1"}}));
  EXPECT_EQ(tls_.server_context(), nullptr);
  EXPECT_EQ(config_.integer(OptionId::kTlsPort), 0);
}

TEST_F(TlsTest, FollowsItsOptionsFromTheStart) {
  Config config;
  Tls tls(config);
  ASSERT_TRUE(tls.follow());
  EXPECT_EQ(tls.server_context(), nullptr);
  const std::vector<NamedValue> files = {{"tls-cert-file", identity_.certificate_file()},
                                         {"tls-key-file", identity_.key_file()},
                                         {"tls-auth-clients", "no"}};
  EXPECT_TRUE(config.set(files));
  EXPECT_EQ(tls.server_context(), nullptr) << "nothing needs it";
  EXPECT_TRUE(config.set(std::vector<NamedValue>{{"tls-port", "1"}}));
  EXPECT_NE(tls.server_context(), nullptr);
  EXPECT_FALSE(config.set(std::vector<NamedValue>{{"tls-ciphers", "none-such"}}));
  EXPECT_NE(tls.server_context(), nullptr);
  // follow() first applies the options that the Tls got from its Config. It must report an error,
  // because a TLS port is set without a certificate.
  Config later;
  set_option(later, OptionId::kTlsPort, "1");
  EXPECT_EQ(Tls(later).follow().error().message, kTlsNotConfigured);
}

TEST_F(TlsTest, OptionsThatChangeTogetherAreAppliedOnce) {
  EXPECT_TRUE(turn_on());
  EXPECT_EQ(applied_, 1);
  EXPECT_NE(tls_.server_context(), nullptr);
  EXPECT_NE(tls_.client_context(), nullptr);
}

TEST_F(TlsTest, TheSameNameAgainReadsTheFileAgain) {
  ASSERT_TRUE(turn_on());
  const auto before = tls_.server_context();
  EXPECT_TRUE(set({{"tls-port", "1"}}));
  EXPECT_EQ(tls_.server_context(), before) << "nothing has changed";
  identity_.renew();
  EXPECT_TRUE(set({{"tls-cert-file", identity_.certificate_file()}}));
  EXPECT_NE(tls_.server_context(), before);
}

TEST_F(TlsTest, ABadFileChangesNothing) {
  ASSERT_TRUE(turn_on());
  const auto before = tls_.server_context();
  // Two changes of options must fail. The first fails because renew() has encrypted the key file,
  // and no password is configured. The second names a certificate file that does not exist.
  identity_.renew("secret");
  EXPECT_FALSE(set({{"tls-cert-file", identity_.certificate_file()}}));
  EXPECT_FALSE(set({{"tls-cert-file", "absent"}, {"tls-auth-clients", "yes"}}));
  EXPECT_EQ(tls_.server_context(), before);
  EXPECT_EQ(config_.text(OptionId::kTlsCertFile), identity_.certificate_file());
  EXPECT_EQ(config_.text(OptionId::kTlsAuthClients), "no");
}

TEST_F(TlsTest, AnErrorOfAnotherOptionTakesItBack) {
  config_.on_change(OptionId::kPort, []() -> core::Result<> { return core::Error{"ERR no"}; });
  ASSERT_TRUE(turn_on());
  const auto before = tls_.server_context();
  EXPECT_FALSE(set({{"tls-key-file", identity_.key_file()}, {"port", "7"}}));
  EXPECT_EQ(tls_.server_context(), before);
}

}  // namespace
}  // namespace server
