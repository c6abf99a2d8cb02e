// SPDX-License-Identifier: MIT
#include "server/net/listener.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/base/config/config.h"
#include "tests/support/listener_fixture.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/reserved_port.h"
#include "tests/support/set_option.h"

namespace server::net {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ListenerTest : public ListenerFixture {
 protected:
  std::string error_of_open() {
    const auto opened = listener_.open();
    return opened ? "" : opened.error().message;
  }
};

TEST_F(ListenerTest, ClientsAreServedOnTheConfiguredAddress) {
  serve();
  EXPECT_TRUE(answers("127.0.0.1", port_));
  EXPECT_FALSE(answers("127.0.0.2", port_));
}

TEST_F(ListenerTest, AnotherPortTakesThePlaceOfTheOld) {
  serve();
  const ReservedPort reserved;
  const uint16_t other = reserved.port();
  EXPECT_TRUE(rebind_to(OptionId::kPort, std::to_string(other)));
  EXPECT_TRUE(answers("127.0.0.1", other));
  EXPECT_FALSE(answers("127.0.0.1", port_));
  EXPECT_TRUE(rebind_to(OptionId::kPort, std::to_string(port_)));
  EXPECT_TRUE(answers("127.0.0.1", port_));
  EXPECT_FALSE(answers("127.0.0.1", other));
}

TEST_F(ListenerTest, PortChangeKeepsConnections) {
  serve();
  const Caller caller;
  ASSERT_TRUE(caller.call("127.0.0.1", port_));
  EXPECT_EQ(caller.ask("PING"), "+PONG\r\n");
  const ReservedPort other;
  EXPECT_TRUE(rebind_to(OptionId::kPort, std::to_string(other.port())));
  EXPECT_EQ(caller.ask("PING"), "+PONG\r\n");
}

TEST_F(ListenerTest, AddressesMayChangeOnTheSamePort) {
  serve();
  for (const std::string addresses :
       {"*", "127.0.0.1 127.0.0.2", "127.0.0.2 127.0.0.3 -::1", "127.0.0.1"}) {
    EXPECT_TRUE(rebind_to(OptionId::kBind, addresses)) << addresses;
    for (const std::string address : {"127.0.0.1", "127.0.0.2", "127.0.0.3"}) {
      const bool is_wanted = addresses == "*" || addresses.find(address) != std::string::npos;
      EXPECT_EQ(answers(address, port_), is_wanted) << addresses << " " << address;
    }
  }
}

TEST_F(ListenerTest, AfterAPortThatIsTakenTheOldOneServes) {
  serve();
  const LoopbackListener taken;
  EXPECT_FALSE(rebind_to(OptionId::kPort, std::to_string(taken.port())));
  EXPECT_TRUE(answers("127.0.0.1", port_));
}

TEST_F(ListenerTest, AfterAnAddressThatIsNotHereTheOldOnesServe) {
  serve();
  EXPECT_FALSE(rebind_to(OptionId::kBind, "192.0.2.1"));
  EXPECT_FALSE(rebind_to(OptionId::kBind, "127.0.0.2 192.0.2.1"));
  EXPECT_TRUE(answers("127.0.0.1", port_));
  EXPECT_FALSE(answers("127.0.0.2", port_)) << "all of the wanted, or none";
}

TEST_F(ListenerTest, APortThatIsTakenIsNamed) {
  const LoopbackListener taken;
  set_option(config_, OptionId::kPort, std::to_string(taken.port()));
  EXPECT_THAT(error_of_open(),
              StartsWith("Failed listening on port " + std::to_string(taken.port()) + " (TCP)"));
}

TEST_F(ListenerTest, AnOptionalAddressMayBeMissing) {
  set_option(config_, OptionId::kBind, "-192.0.2.1 127.0.0.1");
  serve();
  EXPECT_TRUE(answers("127.0.0.1", port_));
}

TEST_F(ListenerTest, SomewhereItMustListen) {
  set_option(config_, OptionId::kPort, "0");
  EXPECT_THAT(error_of_open(), HasSubstr("not listen"));
}

TEST_F(ListenerTest, AUnixSocketHasTheModeThatIsSet) {
  const std::string path = directory_ + "/socket";
  set_option(config_, OptionId::kPort, "0");
  config_.replace(OptionId::kUnixSocket, path);
  config_.replace(OptionId::kUnixSocketPerm, "700");
  serve();
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  const Caller caller(AF_UNIX);
  ASSERT_TRUE(caller.call_path(path));
  EXPECT_EQ(caller.ask("PING"), "+PONG\r\n");
}

TEST_F(ListenerTest, AUnixSocketGoesWithTheListener) {
  const std::string path = directory_ + "/socket";
  config_.replace(OptionId::kUnixSocket, path);
  ASSERT_TRUE(listener_.open());
  EXPECT_TRUE(std::filesystem::exists(path));
  listener_.close();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ListenerTest, OnlyASocketIsRemovedFromThePath) {
  const std::string path = directory_ + "/file";
  std::ofstream(path) << "kept";
  config_.replace(OptionId::kUnixSocket, path);
  EXPECT_THAT(error_of_open(), HasSubstr("Failed opening Unix socket " + path));
  EXPECT_TRUE(std::filesystem::is_regular_file(path));
}

TEST_F(ListenerTest, APathThatIsTooLongIsNamed) {
  config_.replace(OptionId::kUnixSocket, directory_ + "/" + std::string(200, 'x'));
  EXPECT_THAT(error_of_open(), HasSubstr("Unix socket path is too long"));
}

}  // namespace
}  // namespace server::net
