// SPDX-License-Identifier: MIT
#include "server/process/supervision/health_check.h"

#include <gtest/gtest.h>

#include <boost/asio.hpp>
#include <filesystem>
#include <string>
#include <thread>

#include "server/config/command_line.h"
#include "server/config/config.h"

namespace server {
namespace {

namespace asio = boost::asio;

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
  Health check_port(unsigned port) { return check_with({{"port", std::to_string(port)}}); }
  Health check_with(const std::vector<NamedValue>& options) {
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

}  // namespace
}  // namespace server
