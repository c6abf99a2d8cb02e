// SPDX-License-Identifier: MIT
#include "server/process/supervision/health_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "server/config/command_line.h"
#include "server/config/config.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/tls_identity.h"

namespace server {
namespace {

namespace asio = boost::asio;

using ::testing::MatchesRegex;

// A server that answers one connection with fixed bytes.
class HealthCheckTest : public ::testing::Test {
 protected:
  Health check(const std::string& answer) {
    asio::ip::tcp::acceptor acceptor(io_, {asio::ip::address_v4::loopback(), 0});
    std::string question(14, '\0');
    std::thread server([&] {
      auto socket = acceptor.accept();
      asio::read(socket, asio::buffer(question));
      asio::write(socket, asio::buffer(answer));
    });
    const Health health = check_port(acceptor.local_endpoint().port());
    server.join();
    EXPECT_EQ(question, "*1\r\n$4\r\nPING\r\n");
    return health;
  }
  // A server with TLS that answers one connection.
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
      const int descriptor = listener_.accept();
      const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context_.get()), &SSL_free);
      SSL_set_fd(tls.get(), descriptor);
      std::array<char, 14> question{};
      if (SSL_accept(tls.get()) == 1 && SSL_read(tls.get(), question.data(), question.size()) > 0) {
        SSL_write(tls.get(), "+PONG\r\n", 7);
      }
      ::shutdown(descriptor, SHUT_WR);
      // Until the other side has read all and left.
      while (::recv(descriptor, question.data(), question.size(), 0) > 0) {
      }
      ::close(descriptor);
    }

    TlsIdentity identity_;
    LoopbackListener listener_;
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{
        SSL_CTX_new(TLS_server_method()), &SSL_CTX_free};
  };
  static Health check_port(unsigned port) { return check_with({{"port", std::to_string(port)}}); }
  static Health check_with(const std::vector<NamedValue>& options) {
    Config config;
    std::vector<std::string> words{"bloomery-server", "--health-check"};
    for (const auto& option : options) {
      words.push_back("--" + std::string(option.first));
      words.emplace_back(option.second);
    }
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    const auto launch = config.load(static_cast<int>(argv.size()), argv.data());
    EXPECT_EQ(launch.value(), Launch::kCheckHealth);
    return check_health(config);
  }
  asio::io_context io_;
};

TEST_F(HealthCheckTest, WhoAnswersIsHealthy) {
  EXPECT_TRUE(check("+PONG\r\n").is_healthy);
  EXPECT_TRUE(check("-NOAUTH Authentication required.\r\n").is_healthy);
}

TEST_F(HealthCheckTest, WhoLoadsOrSpeaksOtherwiseIsNot) {
  const Health loading = check("-LOADING Redis is loading the dataset in memory\r\n");
  EXPECT_FALSE(loading.is_healthy);
  EXPECT_NE(loading.text.find("answers -LOADING"), std::string::npos);
  EXPECT_FALSE(check("HTTP/1.1 400 Bad Request\r\n").is_healthy);
  EXPECT_FALSE(check("").is_healthy);
}

TEST_F(HealthCheckTest, NobodyThereIsNot) {
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
  EXPECT_THAT(check("-NOAUTH Authentication required.\r\n").text,
              MatchesRegex("port [0-9]+ answers -NOAUTH Authentication required."));
}

TEST_F(HealthCheckTest, AUnixSocketIsAskedWhereThereIsNoPort) {
  std::string pattern = ::testing::TempDir() + "bloomery_health_XXXXXX";
  const std::string directory = ::mkdtemp(pattern.data());
  const std::string path = directory + "/socket";
  asio::local::stream_protocol::acceptor acceptor(io_,
                                                  asio::local::stream_protocol::endpoint(path));
  std::thread server([&] {
    auto socket = acceptor.accept();
    std::string question(14, '\0');
    asio::read(socket, asio::buffer(question));
    asio::write(socket, asio::buffer(std::string("+PONG\r\n")));
  });
  const Health health = check_with({{"port", "0"}, {"unixsocket", path}});
  server.join();
  EXPECT_TRUE(health.is_healthy);
  EXPECT_EQ(health.text, path + " answers +PONG");
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

TEST_F(HealthCheckTest, WhoStaysSilentIsNot) {
  const LoopbackListener silent;
  const Health health = check_port(silent.port());
  EXPECT_FALSE(health.is_healthy);
  EXPECT_EQ(health.text, "port " + std::to_string(silent.port()) + " does not answer");
}

}  // namespace
}  // namespace server
