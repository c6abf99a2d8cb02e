// SPDX-License-Identifier: MIT
//
// Tests which clients a TLS port accepts, and that clients without a complete handshake do not
// block it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "server/base/config/config.h"
#include "server/session/acl/users.h"
#include "server/session/clients.h"
#include "tests/support/listener_fixture.h"
#include "tests/support/reserved_port.h"
#include "tests/support/set_option.h"
#include "tests/support/tls_authority.h"
#include "tests/support/tls_caller.h"

namespace server::net {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The first bytes of a ClientHello: only the header of a record of 512 bytes.
const std::string kHalfHello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);

class TlsPortTest : public ListenerFixture {
 protected:
  TlsPortTest() { EXPECT_TRUE(tls_.follow()); }
  void serve_tls(const std::string& auth_clients, const TlsAuthority::Identity& identity) {
    const auto set =
        config_.set(std::vector<NamedValue>{{"tls-auth-clients", auth_clients},
                                            {"tls-ca-cert-file", authority_.certificate_file()},
                                            {"tls-cert-file", identity.certificate_file},
                                            {"tls-key-file", identity.key_file},
                                            {"tls-port", std::to_string(tls_port_)}});
    ASSERT_TRUE(set) << set.error().message;
    serve();
  }
  void serve_tls(const std::string& auth_clients = "no") {
    serve_tls(auth_clients, authority_.issue("server"));
  }
  bool is_served() { return TlsCaller(authority_).is_served(tls_port_); }
  // Opens connections whose clients send `sent` and then stay silent.
  std::vector<std::unique_ptr<Caller>> hold(size_t count, const std::string& sent) const {
    std::vector<std::unique_ptr<Caller>> held;
    for (size_t i = 0; i < count; ++i) {
      held.push_back(std::make_unique<Caller>());
      EXPECT_TRUE(held.back()->call("127.0.0.1", tls_port_));
      held.back()->send(sent);
    }
    return held;
  }

  TlsAuthority authority_;
  const ReservedPort tls_reserved_;
  const uint16_t tls_port_ = tls_reserved_.port();
};

enum class Certificate { kNone, kOwn, kStrangers, kExpired };

// Test parameters: the value of tls-auth-clients, the kind of certificate that the client has, and
// whether the server accepts the client.
class ClientCertificateTest
    : public TlsPortTest,
      public ::testing::WithParamInterface<std::tuple<const char*, Certificate, bool>> {};

TEST_P(ClientCertificateTest, DecidesWhoIsServed) {
  const auto& [auth_clients, certificate, is_let_in] = GetParam();
  serve_tls(auth_clients);
  TlsAuthority stranger;
  TlsAuthority::Identity identity;
  if (certificate == Certificate::kOwn) identity = authority_.issue("client");
  if (certificate == Certificate::kStrangers) identity = stranger.issue("client");
  if (certificate == Certificate::kExpired) identity = authority_.issue("old", {.seconds = -3600});
  TlsCaller caller(authority_, certificate == Certificate::kNone ? nullptr : &identity);
  EXPECT_EQ(caller.is_served(tls_port_), is_let_in);
}

INSTANTIATE_TEST_SUITE_P(Options, ClientCertificateTest,
                         ::testing::Values(std::tuple("yes", Certificate::kNone, false),
                                           std::tuple("yes", Certificate::kOwn, true),
                                           std::tuple("yes", Certificate::kStrangers, false),
                                           std::tuple("yes", Certificate::kExpired, false),
                                           std::tuple("no", Certificate::kNone, true),
                                           std::tuple("no", Certificate::kOwn, true),
                                           std::tuple("no", Certificate::kStrangers, true),
                                           std::tuple("no", Certificate::kExpired, true),
                                           std::tuple("optional", Certificate::kNone, true),
                                           std::tuple("optional", Certificate::kOwn, true),
                                           std::tuple("optional", Certificate::kStrangers, false),
                                           std::tuple("optional", Certificate::kExpired, false)));

TEST_F(TlsPortTest, ConfigSetCountsForThoseWhoComeLater) {
  serve_tls("yes");
  EXPECT_FALSE(is_served());
  const NamedValue no{"tls-auth-clients", "no"};
  ASSERT_TRUE(config_.set({&no, 1}));
  EXPECT_TRUE(is_served());
}

TEST_F(TlsPortTest, AChainOfAuthoritiesIsSentWhole) {
  serve_tls("no", authority_.issue_by_way_of("between", "below"));
  EXPECT_TRUE(is_served());
}

TEST_F(TlsPortTest, PlainTextIsNotAnswered) {
  serve_tls();
  const Caller caller;
  ASSERT_TRUE(caller.call("127.0.0.1", tls_port_));
  EXPECT_EQ(caller.ask("PING"), "");
  EXPECT_TRUE(is_served());
}

TEST_F(TlsPortTest, PlainPortRejectsAHandshake) {
  serve_tls();
  TlsCaller lost(authority_);
  EXPECT_FALSE(lost.call(port_));
  EXPECT_TRUE(answers("127.0.0.1", port_));
  EXPECT_TRUE(is_served());
}

TEST_F(TlsPortTest, HalfHandshakesDoNotBlockOthers) {
  serve_tls();
  TlsCaller before(authority_);
  ASSERT_TRUE(before.is_served(tls_port_));
  const auto silent = hold(150, "");
  const auto half = hold(150, kHalfHello);
  EXPECT_TRUE(is_served());
  EXPECT_TRUE(answers("127.0.0.1", port_));
  EXPECT_EQ(before.ask("PING"), "+PONG\r\n");
}

TEST_F(TlsPortTest, HandshakesTakeHalfOfThePlaces) {
  set_option(config_, OptionId::kMaxClients, "24");
  serve_tls();
  TlsCaller before(authority_);
  ASSERT_TRUE(before.is_served(tls_port_));
  const size_t count = clients_.count();
  const auto first = hold(1, "");
  const auto others = hold(14, kHalfHello);
  ASSERT_TRUE(await([&] { return clients_.count() >= count + 12; })) << clients_.count();
  TlsCaller late(authority_);
  // A new connection can replace a handshake only when the handshake is one second old. Until then,
  // new connections wait in the kernel's queue.
  std::thread clock([this] { advance_ms(1001); });
  EXPECT_TRUE(late.is_served(tls_port_));
  clock.join();
  EXPECT_EQ(first[0]->hear(), "") << "the oldest had to give way";
  EXPECT_EQ(before.ask("PING"), "+PONG\r\n");
}

TEST_F(TlsPortTest, AHandshakeHasTenSeconds) {
  serve_tls();
  const auto slow = hold(1, kHalfHello);
  EXPECT_TRUE(is_served()) << "accepted after the slow one";
  advance_ms(10'001);
  io_.at(0).loop.post([this] { listener_.clients().end_late_handshakes(); });
  // Single bytes do not extend the deadline of a handshake.
  slow[0]->send("x");
  EXPECT_EQ(slow[0]->hear(), "");
  EXPECT_TRUE(is_served());
}

TEST_F(TlsPortTest, DamagedRecordsEndTheirConnectionAlone) {
  serve_tls();
  TlsCaller other(authority_);
  ASSERT_TRUE(other.is_served(tls_port_));
  const std::string garbage = "garbagegarbagegarbagegarbage";
  const std::string forged = std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x');
  const std::string alert("\x15\x03\x03\x00\x02\x02\x28", 7);
  for (const std::string& damage : {garbage, forged, alert}) {
    TlsCaller damaged(authority_);
    ASSERT_TRUE(damaged.is_served(tls_port_));
    damaged.socket().send(damage);
    EXPECT_TRUE(damaged.socket().await_end());
    EXPECT_EQ(other.ask("PING"), "+PONG\r\n");
  }
}

TEST_F(TlsPortTest, BeforeALoginAClientHasLittle) {
  set_option(config_, OptionId::kRequirePass, "secret");
  users_.set_default_password("secret");
  serve_tls();
  TlsCaller caller(authority_);
  ASSERT_TRUE(caller.call(tls_port_));
  (void)caller.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16000\r\n" + std::string(60'000, 'x'));
  const std::string heard = caller.hear(1000);
  EXPECT_LT(heard.size(), 1000U) << "an error at most";
  EXPECT_THAT(heard, Not(HasSubstr(Caller::kSilence))) << "and the end";
}

TEST_F(TlsPortTest, CommandsBehindALoginInOneRecordRunAsTheUser) {
  set_option(config_, OptionId::kRequirePass, "secret");
  users_.set_default_password("secret");
  serve_tls();
  TlsCaller caller(authority_);
  ASSERT_TRUE(caller.call(tls_port_));
  const std::string text(15'000, 'x');
  const std::string echo = "*2\r\n$4\r\nECHO\r\n" + bulk(text);
  ASSERT_TRUE(caller.send("*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n" + echo + echo + echo));
  const std::string expected = kOk + bulk(text) + bulk(text) + bulk(text);
  EXPECT_EQ(caller.hear(expected.size()), expected);
}

}  // namespace
}  // namespace server::net
