// SPDX-License-Identifier: MIT
#include "server/net/handshakes.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/base/config/config.h"
#include "server/base/transport/tls_stream.h"
#include "server/session/client.h"
#include "server/session/clients.h"
#include "tests/support/command_test.h"

namespace server::net {
namespace {

class HandshakesTest : public CommandTest {
 protected:
  HandshakesTest() {
    const NamedValue limit{"maxclients", "8"};
    EXPECT_TRUE(config_.set({&limit, 1}));
  }
  // Adds a client that sends nothing.
  std::shared_ptr<Client> begin() {
    auto client = std::make_shared<Client>(clients_.next_id());
    client->socket.tls = std::make_shared<TlsStream>(nullptr, TlsStream::Side::kServer, -1);
    clients_.add(client);
    handshakes_.add(client);
    return client;
  }
  std::vector<std::shared_ptr<Client>> begin(size_t count) {
    std::vector<std::shared_ptr<Client>> clients;
    for (size_t i = 0; i < count; ++i) clients.push_back(begin());
    return clients;
  }

  Handshakes handshakes_{services_};
};

TEST_F(HandshakesTest, TenSecondsAreEnough) {
  const auto first = begin();
  advance_ms(4000);
  const auto second = begin();
  advance_ms(5999);
  handshakes_.end_late();
  EXPECT_FALSE(first->kill_requested);
  advance_ms(1);
  handshakes_.end_late();
  EXPECT_TRUE(first->kill_requested);
  EXPECT_FALSE(second->kill_requested);
}

TEST_F(HandshakesTest, HalfOfTheClientsMayBeUnderWay) {
  const auto clients = begin(3);
  EXPECT_TRUE(handshakes_.make_room());
  const auto last = begin();
  EXPECT_FALSE(handshakes_.make_room()) << "none has had its second";
  advance_ms(1000);
  EXPECT_TRUE(handshakes_.make_room());
  EXPECT_TRUE(clients[0]->kill_requested);
  EXPECT_FALSE(clients[1]->kill_requested);
  EXPECT_FALSE(last->kill_requested);
}

TEST_F(HandshakesTest, ThoseThatHaveEndedDoNotCount) {
  const auto clients = begin(4);
  clients[1]->kill_requested = true;
  EXPECT_TRUE(handshakes_.make_room());
  const auto next = begin();
  EXPECT_FALSE(handshakes_.make_room());
  clients_.remove(clients[2]->id);
  EXPECT_TRUE(handshakes_.make_room());
  advance_ms(60'000);
  clients[3]->kill_requested = true;
  handshakes_.end_late();
  EXPECT_TRUE(clients[0]->kill_requested);
  EXPECT_FALSE(clients[2]->kill_requested);
}

}  // namespace
}  // namespace server::net
