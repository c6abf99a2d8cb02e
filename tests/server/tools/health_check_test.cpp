// SPDX-License-Identifier: MIT
#include "server/tools/health_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/config/command_line.h"
#include "server/base/config/config.h"
#include "server/base/process/availability.h"
#include "server/commands/connection/connection_commands.h"
#include "server/dispatch/permissions.h"
#include "server/net/client_acceptor.h"
#include "tests/support/caller.h"
#include "tests/support/error_matcher.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/tls_identity.h"
#include "tests/support/wait_limit.h"

namespace server {
namespace {

namespace asio = boost::asio;

using ::testing::ElementsAre;
using ::testing::MatchesRegex;
using ::testing::StartsWith;
using ::testing::StrEq;

const std::string kPing = "*1\r\n$4\r\nPING\r\n";
const std::string kLogin = "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n" + kPing;

// A server at an address of this machine. On one connection it answers PING with fixed bytes, and
// then AUTH and PING if `login_answers` is not empty.
class PlainPort {
 public:
  PlainPort(const std::string& address, unsigned port, std::string answer,
            std::string login_answers = "")
      : address_(address),
        answer_(std::move(answer)),
        login_answers_(std::move(login_answers)),
        acceptor_(io_, asio::ip::tcp::endpoint(asio::ip::make_address(address),
                                               static_cast<uint16_t>(port))),
        thread_([this] { serve(); }) {}
  ~PlainPort() {
    // If the test has not connected to the simulated server, accept() in the server's thread still
    // waits. This connection ends the wait.
    (void)Caller().call(address_, acceptor_.local_endpoint().port());
    thread_.join();
  }
  PlainPort(const PlainPort&) = delete;
  PlainPort& operator=(const PlainPort&) = delete;

  std::string number() const { return std::to_string(acceptor_.local_endpoint().port()); }

 private:
  void serve() {
    auto socket = acceptor_.accept();
    answer_to(socket, kPing, answer_);
    if (!login_answers_.empty()) answer_to(socket, kLogin, login_answers_);
  }
  static void answer_to(asio::ip::tcp::socket& socket, const std::string& expected,
                        const std::string& answer) {
    std::string question(expected.size(), '\0');
    boost::system::error_code error;
    asio::read(socket, asio::buffer(question), error);
    if (error) return;
    EXPECT_EQ(question, expected);
    asio::write(socket, asio::buffer(answer), error);
  }

  const std::string address_;
  const std::string answer_;
  const std::string login_answers_;
  asio::io_context io_;
  asio::ip::tcp::acceptor acceptor_;
  std::thread thread_;
};

class HealthCheckTest : public ::testing::Test {
 protected:
  static constexpr auto kServes = HealthQuestion::kServes;
  static constexpr auto kLives = HealthQuestion::kLives;
  // These time limits are so long that the check succeeds even if a busy machine runs the server's
  // thread late.
  static constexpr HealthLimits kPatient{.answer = std::chrono::seconds(20),
                                         .slow = std::chrono::seconds(20)};
  static constexpr int kPatienceMs = 60'000;

  // Returns whether a client connects to `listener` within `patience_ms`.
  static bool is_called(int listener, int patience_ms = kPatienceMs) {
    pollfd waited{listener, POLLIN, 0};
    return ::poll(&waited, 1, patience_ms) > 0;
  }

  static Health check(const std::string& answer, HealthQuestion question = kServes) {
    const PlainPort port("127.0.0.1", 0, answer);
    return check_with({{"port", port.number()}}, question);
  }
  // Runs the health check with this `bind` option, for a server that listens only on 127.0.0.2. In
  // the text of the result, "N" replaces the port number.
  static Health check_bind(const std::string& addresses, const std::string& answer = "+PONG\r\n") {
    const PlainPort port("127.0.0.2", 0, answer);
    Health health = check_with({{"port", port.number()}, {"bind", addresses}});
    const std::string number = port.number();
    if (const size_t at = health.text.find(number); at != std::string::npos) {
      health.text.replace(at, number.size(), "N");
    }
    return health;
  }
  // A server with TLS that replies to one connection.
  class TlsPort {
   public:
    explicit TlsPort(bool wants_certificate) {
      SSL_CTX_use_certificate_file(context_.get(), identity_.certificate_file().c_str(),
                                   SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context_.get(), identity_.key_file().c_str(), SSL_FILETYPE_PEM);
      if (wants_certificate) {
        SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                           nullptr);
      }
    }
    unsigned number() const { return listener_.port(); }
    Health check() {
      std::thread server([this] { answer(); });
      const Health health =
          check_with({{"port", "0"}, {"tls-port", std::to_string(listener_.port())}});
      server.join();
      return health;
    }

   private:
    void answer() const {
      if (!is_called(listener_.descriptor())) {
        ADD_FAILURE() << "no client has connected";
        return;
      }
      const int descriptor = listener_.accept();
      support::limit_waits(descriptor);
      const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context_.get()), &SSL_free);
      SSL_set_fd(tls.get(), descriptor);
      std::array<char, 14> question{};
      if (SSL_accept(tls.get()) == 1 && SSL_read(tls.get(), question.data(), question.size()) > 0) {
        SSL_write(tls.get(), "+PONG\r\n", 7);
      }
      ::shutdown(descriptor, SHUT_WR);
      // Waits until the health check has read the reply and closed its connection.
      while (::recv(descriptor, question.data(), question.size(), 0) > 0) {
      }
      ::close(descriptor);
    }

    TlsIdentity identity_;
    LoopbackListener listener_;
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{
        SSL_CTX_new(TLS_server_method()), &SSL_CTX_free};
  };
  static Health check_port(unsigned port, const HealthLimits& limits = kPatient) {
    return check_with({{"port", std::to_string(port)}}, kServes, limits);
  }
  static Health check_with(const std::vector<NamedValue>& options,
                           HealthQuestion question = kServes,
                           const HealthLimits& limits = kPatient) {
    Config config;
    std::vector<std::string> words{"bloomery-server", "--health-check"};
    if (question == kLives) words.emplace_back("--alive");
    for (const auto& option : options) {
      words.push_back("--" + std::string(option.first));
      words.emplace_back(option.second);
    }
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    EXPECT_EQ(take_health_question(argv), question);
    const auto launch = config.load(static_cast<int>(argv.size()), argv.data());
    EXPECT_EQ(launch.value(), Launch::kCheckHealth);
    return check_health(config, question, limits);
  }
  asio::io_context io_;
};

TEST_F(HealthCheckTest, ServerThatRepliesIsHealthy) {
  EXPECT_TRUE(check("+PONG\r\n").is_healthy);
  EXPECT_TRUE(check(encoded_error(kNotAuthenticated)).is_healthy);
}

TEST_F(HealthCheckTest, LoadingOrForeignServerIsUnhealthy) {
  const Health loading = check(encoded_error(kServerIsLoading));
  EXPECT_FALSE(loading.is_healthy);
  EXPECT_NE(loading.text.find("answers -LOADING"), std::string::npos);
  EXPECT_FALSE(check("HTTP/1.1 400 Bad Request\r\n").is_healthy);
  EXPECT_FALSE(check("").is_healthy);
}

TEST_F(HealthCheckTest, ServerThatRepliesAtAllIsAlive) {
  for (const std::string& answer : std::vector<std::string>{
           "+PONG\r\n", encoded_error(kNotAuthenticated), "-LOADING Redis is loading\r\n",
           "-MISCONF Errors writing to the AOF file\r\n",
           "-MASTERDOWN Link with MASTER is down\r\n", encoded_error(net::kTooManyClients)}) {
    EXPECT_TRUE(check(answer, kLives).is_healthy) << answer;
  }
  EXPECT_FALSE(check("-MISCONF Errors writing to the AOF file\r\n").is_healthy);
  EXPECT_FALSE(check("HTTP/1.1 400 Bad Request\r\n", kLives).is_healthy);
  EXPECT_FALSE(check("", kLives).is_healthy);
}

TEST_F(HealthCheckTest, OnlyBehindItsOptionIsAliveAQuestion) {
  std::vector<const char*> words{"bloomery-server", "--health-check", "--alive", "a.conf"};
  EXPECT_EQ(take_health_question(words), kLives);
  EXPECT_THAT(words,
              ElementsAre(StrEq("bloomery-server"), StrEq("--health-check"), StrEq("a.conf")));
  words = {"bloomery-server", "--health-check", "--requirepass", "--alive"};
  EXPECT_EQ(take_health_question(words), kServes);
  EXPECT_EQ(words.size(), 4U);
  words = {"bloomery-server", "--requirepass", "--alive"};
  EXPECT_EQ(take_health_question(words), kServes);
  words.clear();
  EXPECT_EQ(take_health_question(words), kServes);
}

TEST_F(HealthCheckTest, TheAddressesOfBindAreAsked) {
  EXPECT_EQ(check_bind("127.0.0.2").text, "port N of 127.0.0.2 answers +PONG");
  EXPECT_EQ(check_bind("-127.0.0.2").text, "port N of 127.0.0.2 answers +PONG");
  EXPECT_EQ(check_bind("127.0.0.3 127.0.0.2").text, "port N of 127.0.0.2 answers +PONG");
  EXPECT_EQ(check_bind("127.0.0.3").text, "port N of 127.0.0.3: Connection refused");
}

TEST_F(HealthCheckTest, ServersOfOtherMachinesAreNotAsked) {
  EXPECT_EQ(check_bind("192.0.2.1").text, "port N of 192.0.2.1: Cannot assign requested address");
  EXPECT_EQ(check_bind("-192.0.2.1 127.0.0.2").text, "port N of 127.0.0.2 answers +PONG");
  EXPECT_EQ(check_bind("-192.0.2.1 127.0.0.2", "-LOADING wait\r\n").text,
            "port N of 127.0.0.2 answers -LOADING wait");
}

TEST_F(HealthCheckTest, OneHealthyAddressSuffices) {
  std::unique_ptr<PlainPort> own;
  std::unique_ptr<PlainPort> stranger;
  for (int tries = 0; stranger == nullptr && tries < 10; ++tries) {
    own = std::make_unique<PlainPort>("127.0.0.1", 0, "+PONG\r\n");
    const auto port = static_cast<unsigned>(std::stoul(own->number()));
    try {
      stranger = std::make_unique<PlainPort>("127.0.0.2", port, "-DENIED protected mode\r\n");
    } catch (const boost::system::system_error&) {
      // Another process uses this port of 127.0.0.2, so the test tries another port.
    }
  }
  ASSERT_NE(stranger, nullptr);
  const Health health = check_with({{"port", own->number()}, {"bind", "127.0.0.2 127.0.0.1"}});
  EXPECT_EQ(health.text, "port " + own->number() + " answers +PONG");
  EXPECT_TRUE(health.is_healthy);
}

TEST_F(HealthCheckTest, AllAddressesMeanThisMachine) {
  for (const std::string address : {"*", "-*", "0.0.0.0", "-0.0.0.0"}) {
    const PlainPort port("127.0.0.1", 0, "+PONG\r\n");
    EXPECT_TRUE(check_with({{"port", port.number()}, {"bind", address}}).is_healthy) << address;
  }
  for (const std::string address : {"::", "::*", "-::*"}) {
    // The check of `::` connects to a loopback address, which also works on machines without IPv6.
    EXPECT_THAT(check_bind(address).text, StartsWith("port N: ")) << address;
  }
}

TEST_F(HealthCheckTest, AServerThatHangsIsAskedOnce) {
  const LoopbackListener silent;
  const Health health = check_with({{"port", std::to_string(silent.port())},
                                    {"bind", "127.0.0.1 127.0.0.1 127.0.0.1 127.0.0.1"}},
                                   kServes, HealthLimits{});
  EXPECT_FALSE(health.is_healthy);
  int connections = 0;
  for (; is_called(silent.descriptor(), 0); ++connections) ::close(silent.accept());
  EXPECT_EQ(connections, 1);
}

TEST_F(HealthCheckTest, MissingServerIsUnhealthy) {
  unsigned free_port = 0;
  {
    const asio::ip::tcp::acceptor acceptor(io_, {asio::ip::address_v4::loopback(), 0});
    free_port = acceptor.local_endpoint().port();
  }
  const Health health = check_port(free_port);
  EXPECT_FALSE(health.is_healthy);
  EXPECT_NE(health.text.find("Connection refused"), std::string::npos) << health.text;
  EXPECT_FALSE(check_with({{"port", "0"}}).is_healthy);
  EXPECT_FALSE(check_with({{"port", "0"}, {"unixsocket", "/none/such.sock"}}).is_healthy);
}

TEST_F(HealthCheckTest, TellsWhereItAskedAndWhatItHeard) {
  EXPECT_THAT(check(encoded_error(kNotAuthenticated)).text,
              MatchesRegex("port [0-9]+ answers -NOAUTH Authentication required."));
}

// Without AUTH, a server with a password answers NOAUTH even while it is loading.
TEST_F(HealthCheckTest, LogsInWithThePassword) {
  const std::string no_auth = encoded_error(kNotAuthenticated);
  const auto check_login = [&](const std::string& answer, const std::string& login_answers,
                               HealthQuestion question = kServes) {
    const PlainPort port("127.0.0.1", 0, answer, login_answers);
    return check_with({{"port", port.number()}, {"requirepass", "pw"}}, question).is_healthy;
  };
  EXPECT_TRUE(check_login("+PONG\r\n", "")) << "no login is needed";
  EXPECT_TRUE(check_login(no_auth, "+OK\r\n+PONG\r\n"));
  EXPECT_FALSE(check_login(no_auth, "+OK\r\n-LOADING wait\r\n"));
  EXPECT_TRUE(check_login(no_auth, "+OK\r\n-LOADING wait\r\n", kLives));
  EXPECT_TRUE(check_login(no_auth, encoded_error(kWrongPassword) + no_auth))
      << "the password has changed since the start";
  EXPECT_FALSE(check_login(encoded_error(net::kTooManyClients), ""));
  EXPECT_TRUE(check_login(encoded_error(net::kTooManyClients), "", kLives));
}

TEST_F(HealthCheckTest, AUnixSocketIsAskedWhereThereIsNoPort) {
  std::string pattern = ::testing::TempDir() + "bloomery_health_XXXXXX";
  const std::string directory = ::mkdtemp(pattern.data());
  const std::string path = directory + "/socket";
  asio::local::stream_protocol::acceptor acceptor(io_,
                                                  asio::local::stream_protocol::endpoint(path));
  // With an empty `bind`, the server listens on no port.
  for (const NamedValue& no_port : {NamedValue("port", "0"), NamedValue("bind", "")}) {
    std::thread server([&] {
      if (!is_called(acceptor.native_handle())) {
        ADD_FAILURE() << "no client has connected";
        return;
      }
      auto socket = acceptor.accept();
      const int descriptor = socket.native_handle();
      support::limit_waits(descriptor);
      // asio::read() would continue to wait after the limit, so the test calls recv().
      std::string question(14, '\0');
      EXPECT_EQ(::recv(descriptor, question.data(), question.size(), MSG_WAITALL), 14);
      EXPECT_EQ(::send(descriptor, "+PONG\r\n", 7, MSG_NOSIGNAL), 7);
    });
    const Health health = check_with({no_port, {"unixsocket", path}});
    server.join();
    EXPECT_TRUE(health.is_healthy);
    EXPECT_EQ(health.text, path + " answers +PONG");
  }
  std::filesystem::remove_all(directory);
}

TEST_F(HealthCheckTest, ATlsPortIsAskedWhateverItsCertificate) {
  TlsPort port(false);
  const Health health = port.check();
  EXPECT_TRUE(health.is_healthy) << health.text;
  EXPECT_EQ(health.text, "port " + std::to_string(port.number()) + " answers +PONG");
}

TEST_F(HealthCheckTest, AServerThatWantsACertificateIsThere) {
  TlsPort port(true);
  const Health health = port.check();
  EXPECT_TRUE(health.is_healthy) << health.text;
  EXPECT_NE(health.text.find("answers -NOAUTH"), std::string::npos) << health.text;
}

TEST_F(HealthCheckTest, SilentServerIsUnhealthy) {
  const LoopbackListener silent;
  const Health health = check_port(silent.port(), HealthLimits{});
  EXPECT_FALSE(health.is_healthy);
  EXPECT_EQ(health.text, "port " + std::to_string(silent.port()) + " does not answer");
}

}  // namespace
}  // namespace server
