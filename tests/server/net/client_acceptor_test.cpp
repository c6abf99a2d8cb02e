// SPDX-License-Identifier: MIT
#include "server/net/client_acceptor.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string>

#include "server/base/config/config.h"
#include "server/base/metrics/statistics.h"
#include "server/session/acl/users.h"
#include "server/session/clients.h"
#include "server/session/session.h"
#include "tests/support/error_matcher.h"
#include "tests/support/listener_fixture.h"
#include "tests/support/set_option.h"
#include "tests/support/socket_pair.h"

namespace server::net {
namespace {

using ::testing::StartsWith;
using Kind = ClientAcceptor::Kind;

class ClientAcceptorTest : public ListenerFixture {
 protected:
  // Returns the bytes that a client on a socket pair receives before it sends anything.
  std::string greeting(Kind kind) {
    SocketPair pair;
    listener_.clients().accept(std::exchange(pair.near, -1), kind);
    std::string heard(1024, '\0');
    const ssize_t size = ::recv(pair.far, heard.data(), heard.size(), 0);
    return size < 0 ? "(open)" : heard.substr(0, static_cast<size_t>(size));
  }
  uint64_t rejected() { return statistics_.total(&ThreadStatistics::connections_rejected); }
};

TEST_F(ClientAcceptorTest, RejectsAndCountsClientsAboveTheLimit) {
  // The fixture's own clients count towards maxclients, so the server accepts only one more client.
  set_option(config_, OptionId::kMaxClients, std::to_string(clients_.count() + 1));
  serve();
  const Caller first;
  ASSERT_TRUE(first.call("127.0.0.1", port_));
  EXPECT_EQ(first.ask("PING"), "+PONG\r\n");
  const Caller second;
  ASSERT_TRUE(second.call("127.0.0.1", port_));
  EXPECT_EQ(second.hear(), encoded_error(net::kTooManyClients));
  EXPECT_EQ(second.hear(), "") << "and let go";
}

TEST_F(ClientAcceptorTest, APlaceThatIsLeftIsGivenToAnother) {
  const size_t others = clients_.count();
  set_option(config_, OptionId::kMaxClients, std::to_string(others + 1));
  serve();
  {
    const Caller first;
    ASSERT_TRUE(first.call("127.0.0.1", port_));
    EXPECT_EQ(first.ask("PING"), "+PONG\r\n");
  }
  ASSERT_TRUE(await([&] { return clients_.count() <= others; })) << clients_.count();
  EXPECT_TRUE(answers("127.0.0.1", port_));
}

TEST_F(ClientAcceptorTest, NewClientsMustLogInWhereAPasswordIsAsked) {
  users_.set_default_password("secret");
  serve();
  const Caller caller;
  ASSERT_TRUE(caller.call("127.0.0.1", port_));
  EXPECT_THAT(caller.ask("PING"), StartsWith("-NOAUTH"));
  EXPECT_EQ(caller.ask("AUTH secret"), "+OK\r\n");
}

TEST_F(ClientAcceptorTest, SessionsKnowBothEndsOfTheirSocket) {
  serve();
  const Caller caller;
  ASSERT_TRUE(caller.call("127.0.0.1", port_));
  EXPECT_EQ(caller.ask("PING"), "+PONG\r\n");
  const auto client = clients_.list().back();
  EXPECT_THAT(client->address, StartsWith("127.0.0.1:"));
  EXPECT_EQ(client->local_address, "127.0.0.1:" + std::to_string(port_));
  EXPECT_FALSE(client->socket.is_unix);
}

TEST_F(ClientAcceptorTest, ProtectedModeAnswersThisMachineAlone) {
  EXPECT_THAT(greeting(Kind::kTcp), StartsWith("-DENIED Bloomery is running in protected mode"));
  EXPECT_EQ(greeting(Kind::kTls), "") << "nothing that no TLS client could read";
  EXPECT_EQ(rejected(), 2U);
  EXPECT_EQ(greeting(Kind::kUnix), "(open)");
  set_option(config_, OptionId::kProtectedMode, "no");
  EXPECT_EQ(greeting(Kind::kTcp), "(open)");
  set_option(config_, OptionId::kProtectedMode, "yes");
  users_.set_default_password("secret");
  EXPECT_EQ(greeting(Kind::kTcp), "(open)");
  EXPECT_EQ(rejected(), 2U);
}

TEST_F(ClientAcceptorTest, AUnixSocketsClientsBearItsPath) {
  config_.replace(OptionId::kUnixSocket, directory_ + "/socket");
  EXPECT_EQ(greeting(Kind::kUnix), "(open)");
  const auto client = clients_.list().back();
  EXPECT_EQ(client->address, directory_ + "/socket:0");
  EXPECT_EQ(client->local_address, client->address);
  EXPECT_TRUE(client->socket.is_unix);
}

TEST_F(ClientAcceptorTest, ConnectionsAreKeptAlive) {
  set_option(config_, OptionId::kTcpKeepalive, "30");
  serve();
  const Caller caller;
  ASSERT_TRUE(caller.call("127.0.0.1", port_));
  EXPECT_EQ(caller.ask("PING"), "+PONG\r\n");
  const int descriptor = clients_.list().back()->socket.descriptor;
  const auto option = [descriptor](int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(descriptor, level, name, &value, &size), 0);
    return value;
  };
  EXPECT_EQ(option(IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 30);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPINTVL), 10);
}

}  // namespace
}  // namespace server::net
