// SPDX-License-Identifier: MIT
//
// Tests connections over TLS on socket pairs, and CONFIG SET of certificates while connections are
// open.
#include <gmock/gmock.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/config/config.h"
#include "server/base/config/value.h"
#include "server/base/transport/tls.h"
#include "server/base/transport/tls_files.h"
#include "server/base/transport/tls_stream.h"
#include "tests/support/captured_log.h"
#include "tests/support/clients_fixture.h"
#include "tests/support/tls_identity.h"

namespace server::net {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class TlsConnectionTest : public ClientsFixture {
 protected:
  // A TLS client that trusts the certificate `trusted`, and its connection to the server.
  class TlsRemote {
   public:
    TlsRemote(TlsConnectionTest& owner, const TlsIdentity& trusted,
              const std::string& protocols = "")
        : owner_(owner),
          remote_(owner, owner.tls_.server_context()),
          stream_(context_of(owner.identity_, trusted, protocols), TlsStream::Side::kClient,
                  ::dup(remote_.sockets.far)) {}

    // Sends bytes to the server. Also stores the bytes that the server sends meanwhile.
    bool send(std::string_view bytes) {
      int refusals = 0;
      do {
        const auto outcome = stream_.send(bytes);
        if (outcome.status == Stream::Status::kBroken) return false;
        bytes.remove_prefix(outcome.bytes);
        refusals = outcome.bytes > 0 ? 0 : refusals + 1;
        take();
      } while (!bytes.empty() && refusals < 20);
      return bytes.empty();
    }
    std::string answer(std::string_view bytes) {
      EXPECT_TRUE(send(bytes));
      return received();
    }
    // Receives until no more bytes arrive. Returns these bytes, followed by "(end)" if the server
    // has sent the TLS alert close_notify.
    std::string received() {
      for (size_t before = 1; before != received_.size();) {
        before = received_.size();
        take();
      }
      return std::exchange(received_, {});
    }
    bool is_established() const { return stream_.phase() == TlsStream::Phase::kEstablished; }
    std::string failure() const { return stream_.failure(); }
    Remote& remote() { return remote_; }

   private:
    static std::shared_ptr<SSL_CTX> context_of(const TlsIdentity& own, const TlsIdentity& trusted,
                                               const std::string& protocols) {
      TlsSettings settings;
      settings.server = {own.certificate_file(), own.key_file(), ""};
      settings.ca_file = trusted.certificate_file();
      settings.protocols = protocols;
      // OpenSSL allows TLS 1.0 and 1.1 only at security level 0.
      if (!protocols.empty()) settings.ciphers = "ALL:@SECLEVEL=0";
      const auto context = TlsContext::make(settings);
      EXPECT_TRUE(context) << context.error().message;
      return context->client;
    }
    void take() {
      owner_.serve();
      std::string room((size_t{64} << 10) + Stream::kExtraBytesMax, '\0');
      while (true) {
        const auto outcome = stream_.receive({}, room, size_t{64} << 10);
        received_ += room.substr(0, outcome.bytes);
        if (outcome.status == Stream::Status::kEnd && !has_ended_) {
          has_ended_ = true;
          received_ += "(end)";
        }
        if (outcome.status != Stream::Status::kDone) return;
      }
    }

    TlsConnectionTest& owner_;
    Remote remote_;
    TlsStream stream_;
    std::string received_;
    bool has_ended_ = false;
  };

  TlsConnectionTest() { EXPECT_TRUE(tls_.follow()); }
  void turn_on() {
    ASSERT_EQ(set({"tls-auth-clients", "no", "tls-cert-file", identity_.certificate_file(),
                   "tls-key-file", identity_.key_file(), "tls-ca-cert-file",
                   identity_.certificate_file(), "tls-port", "1"}),
              kOk);
  }
  std::string set(std::vector<std::string> words) {
    words.insert(words.begin(), {"CONFIG", "SET"});
    return run(words);
  }
  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = identity_.directory() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  // Returns whether the server presents the certificate of `identity` to new clients: a new client
  // that trusts this certificate must get a reply.
  bool is_shown(const TlsIdentity& identity) {
    TlsRemote client(*this, identity);
    return client.send("PING\r\n") && client.received() == "+PONG\r\n";
  }

  TlsIdentity identity_;
  Tls tls_{config_};
};

class TlsOnTest : public TlsConnectionTest {
 protected:
  TlsOnTest() { turn_on(); }
};

class TlsTrafficTest : public TlsOnTest {
 protected:
  TlsRemote client_over_tls_{*this, identity_};
};

TEST_F(TlsTrafficTest, EncryptedAndPlainClientsShareTheData) {
  EXPECT_EQ(connect().call("SET key value"), "+OK");
  EXPECT_EQ(client_over_tls_.answer("GET key\r\n"), bulk("value"));
}

TEST_F(TlsTrafficTest, MessagesReachAnEncryptedSubscriber) {
  EXPECT_THAT(client_over_tls_.answer("SUBSCRIBE channel\r\n"), HasSubstr("subscribe"));
  EXPECT_EQ(run({"PUBLISH", "channel", "text"}), integer(1));
  EXPECT_EQ(client_over_tls_.received(), array({bulk("message"), bulk("channel"), bulk("text")}));
}

TEST_F(TlsTrafficTest, LargeValuesComeWhole) {
  std::string large;
  for (int i = 0; i < 8'000'000; ++i) large += static_cast<char>(i);
  EXPECT_EQ(client_over_tls_.answer(request_of({"SET", "large", large})), kOk);
  EXPECT_TRUE(client_over_tls_.answer("GET large\r\n") == bulk(large));
}

TEST_F(TlsTrafficTest, APipelineIsAnsweredInOrder) {
  std::string request;
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    request += request_of({"ECHO", std::to_string(i)});
    expected += bulk(std::to_string(i));
  }
  EXPECT_TRUE(client_over_tls_.answer(request) == expected);
}

TEST_F(TlsTrafficTest, ARecordMayHoldOneByte) {
  const std::string word(100, 'x');
  std::string said;
  for (const char byte : request_of({"ECHO", word})) {
    EXPECT_TRUE(client_over_tls_.send(std::string(1, byte)));
  }
  EXPECT_EQ(client_over_tls_.received(), bulk(word));
}

TEST_F(TlsTrafficTest, ACommandMayEndInTheMidstOfARecord) {
  const std::string word(100, 'x');
  std::string request;
  std::string expected;
  for (int i = 0; i < 700; ++i) {
    request += request_of({"ECHO", word});
    expected += bulk(word);
  }
  for (const size_t size : {1000, 16'384, 16'385, 65'536, 70'000}) {
    for (size_t begin = 0; begin < request.size(); begin += size) {
      EXPECT_TRUE(client_over_tls_.send(request.substr(begin, size)));
    }
    EXPECT_TRUE(client_over_tls_.received() == expected) << size;
  }
}

TEST_F(TlsTrafficTest, AClientThatReadsSlowlyGetsAll) {
  const std::string value(1'000'000, 'x');
  run({"SET", "key", value});
  std::string request;
  for (int i = 0; i < 60; ++i) request += "GET key\r\n";
  EXPECT_EQ(client_over_tls_.answer("PING\r\n"), "+PONG\r\n");
  // The replies are bigger than the socket's buffer, so the server must wait until the socket is
  // writable again.
  for (int i = 0; i < 5; ++i) serve();
  const std::string said = client_over_tls_.answer(request);
  ASSERT_EQ(said.size(), 60 * bulk(value).size());
  for (const protocol::Reply& reply : replies_in(said)) EXPECT_TRUE(reply.text == value);
}

TEST_F(TlsTrafficTest, ReportsTheEnd) {
  EXPECT_EQ(client_over_tls_.answer("QUIT\r\n"), "+OK\r\n(end)");
  EXPECT_TRUE(client_over_tls_.remote().is_closed());
}

TEST_F(TlsTrafficTest, OnlyTheVersionsOfTodayAreSpoken) {
  for (const char* const version : {"TLSv1.2", "TLSv1.3"}) {
    TlsRemote client(*this, identity_, version);
    EXPECT_EQ(client.answer("PING\r\n"), "+PONG\r\n") << version;
  }
  for (const char* const version : {"TLSv1", "TLSv1.1"}) {
    TlsRemote client(*this, identity_, version);
    EXPECT_FALSE(client.send("PING\r\n")) << version;
    EXPECT_THAT(client.failure(), HasSubstr("alert")) << version;
    EXPECT_TRUE(client.remote().is_closed());
  }
}

TEST_F(TlsTrafficTest, PlainTextEndsTheConnection) {
  TlsRemote client(*this, identity_);
  client.remote().send("PING\r\n");
  serve();
  EXPECT_TRUE(client.remote().is_closed());
}

// Tests how CONFIG SET of TLS options affects open and new connections.
class TlsReloadTest : public TlsOnTest {
 protected:
  TlsIdentity next_;
};

TEST_F(TlsReloadTest, NewConnectionsSeeAnotherCertificate) {
  TlsRemote before(*this, identity_);
  EXPECT_EQ(before.answer("PING\r\n"), "+PONG\r\n");
  EXPECT_FALSE(is_shown(next_));
  EXPECT_EQ(set({"tls-cert-file", next_.certificate_file(), "tls-key-file", next_.key_file()}),
            kOk);
  EXPECT_TRUE(is_shown(next_));
  EXPECT_FALSE(is_shown(identity_));
  EXPECT_EQ(before.answer("PING\r\n"), "+PONG\r\n") << "who is connected stays so";
}

TEST_F(TlsReloadTest, InvalidFilesChangeNothing) {
  const CapturedLog log;
  const std::string garbage = file("garbage", "no certificate");
  const std::string absent = identity_.directory() + "/absent";
  TlsRemote before(*this, identity_);
  const std::string shown = run({"CONFIG", "GET", "tls-*"});
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"tls-cert-file", garbage},
           {"tls-cert-file", absent},
           // A certificate that does not belong to the server's key.
           {"tls-cert-file", next_.certificate_file()},
           {"tls-key-file", garbage},
           {"tls-ca-cert-file", garbage},
           {"tls-dh-params-file", garbage},
           {"tls-protocols", "SSLv3"},
           {"tls-protocols", "TLSv9"},
           {"tls-ciphers", "NOBODY-KNOWS"},
           {"tls-ciphersuites", "TLS_NONE"},
           {"tls-ca-cert-file", "", "tls-auth-clients", "yes"},
           {"maxclients", "77", "tls-cert-file", absent}}) {
    EXPECT_THAT(set(words), HasSubstr(kTlsNotUpdated)) << testing::PrintToString(words);
    EXPECT_EQ(run({"CONFIG", "GET", "tls-*"}), shown) << testing::PrintToString(words);
  }
  EXPECT_EQ(run({"CONFIG", "GET", "maxclients"}), array({bulk("maxclients"), bulk("10000")}));
  EXPECT_TRUE(is_shown(identity_));
  EXPECT_EQ(before.answer("PING\r\n"), "+PONG\r\n");
}

TEST_F(TlsReloadTest, AnEncryptedKeyNeedsItsPassword) {
  const CapturedLog log;
  next_.renew("secret");
  const std::vector<std::string> files{"tls-cert-file", next_.certificate_file(), "tls-key-file",
                                       next_.key_file()};
  EXPECT_THAT(set(files), StartsWith("-ERR CONFIG SET failed"));
  EXPECT_THAT(log.text(), HasSubstr(kPrivateKeyFails));
  std::vector<std::string> with_password = files;
  with_password.insert(with_password.end(), {"tls-key-file-pass", "secret"});
  EXPECT_EQ(set(with_password), kOk);
  EXPECT_TRUE(is_shown(next_));
}

TEST_F(TlsConnectionTest, WithoutACertificateThereIsNoPort) {
  const CapturedLog log;
  EXPECT_EQ(set({"tls-port", "1"}), error(config_set_error("tls-port", kTlsNotUpdated)));
  EXPECT_EQ(run({"CONFIG", "GET", "tls-port"}), array({bulk("tls-port"), bulk("0")}));
  EXPECT_THAT(log.text(), HasSubstr("No tls-cert-file configured"));
}

// The expected errors were measured on Redis 7.0.15.
TEST_F(TlsReloadTest, WrongValuesAreRefusedAsByRedis) {
  const CapturedLog log;
  const auto refused = [this](const std::string& name, const std::string& value,
                              std::string_view why) {
    EXPECT_EQ(set({name, value}), error(config_set_error(name, why)));
  };
  refused("tls-cert-file", "/absent", kTlsNotUpdated);
  refused("tls-protocols", "TLSv9", kTlsNotUpdated);
  refused("tls-port", "70000", out_of_range(0, 65535).reason);
  refused("tls-port", "x", kNoInteger);
  refused("tls-auth-clients", "perhaps", unknown_choice("no, yes, optional").reason);
  refused("tls-session-cache-size", "-1", out_of_range(0, 2147483647).reason);
  refused("tls-replication", "2", kNoBoolean);
  EXPECT_EQ(set({"tls-key-file-pass", "x", "tls-key-file-pass", "y"}),
            error(config_set_error("tls-key-file-pass", "duplicate parameter")));
  EXPECT_EQ(set({"tls-protocols", "TLSv1.3"}), kOk);
}

TEST_F(TlsReloadTest, OptionsAreShownAsByRedis) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"tls-prefer-server-ciphers", "no"},
                                                        {"tls-session-cache-size", "20480"},
                                                        {"tls-auth-clients", "no"},
                                                        {"tls-ca-cert-dir", ""},
                                                        {"tls-ciphersuites", ""},
                                                        {"tls-protocols", ""},
                                                        {"tls-session-caching", "yes"},
                                                        {"tls-client-key-file-pass", ""},
                                                        {"tls-cluster", "no"},
                                                        {"tls-ciphers", ""},
                                                        {"tls-key-file-pass", ""},
                                                        {"tls-session-cache-timeout", "300"},
                                                        {"tls-replication", "no"}}) {
    EXPECT_EQ(run({"CONFIG", "GET", name}), array({bulk(name), bulk(value)}));
  }
}

}  // namespace
}  // namespace server::net
