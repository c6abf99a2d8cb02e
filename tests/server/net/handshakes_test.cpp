// SPDX-License-Identifier: MIT
#include "server/net/handshakes.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/base/config/config.h"
#include "server/base/transport/tls_stream.h"
#include "server/session/clients.h"
#include "server/session/session.h"
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
  std::shared_ptr<Session> begin() {
    auto session = std::make_shared<Session>(clients_.next_id());
    session->socket.tls = std::make_shared<TlsStream>(nullptr, TlsStream::Side::kServer, -1);
    clients_.add(session);
    handshakes_.add(session);
    return session;
  }
  std::vector<std::shared_ptr<Session>> begin(size_t count) {
    std::vector<std::shared_ptr<Session>> sessions;
    for (size_t i = 0; i < count; ++i) sessions.push_back(begin());
    return sessions;
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
  const auto sessions = begin(3);
  EXPECT_TRUE(handshakes_.make_room());
  const auto last = begin();
  EXPECT_FALSE(handshakes_.make_room()) << "none has had its second";
  advance_ms(1000);
  EXPECT_TRUE(handshakes_.make_room());
  EXPECT_TRUE(sessions[0]->kill_requested);
  EXPECT_FALSE(sessions[1]->kill_requested);
  EXPECT_FALSE(last->kill_requested);
}

TEST_F(HandshakesTest, ThoseThatHaveEndedDoNotCount) {
  const auto sessions = begin(4);
  sessions[1]->kill_requested = true;
  EXPECT_TRUE(handshakes_.make_room());
  const auto next = begin();
  EXPECT_FALSE(handshakes_.make_room());
  clients_.remove(sessions[2]->id);
  EXPECT_TRUE(handshakes_.make_room());
  advance_ms(60'000);
  sessions[3]->kill_requested = true;
  handshakes_.end_late();
  EXPECT_TRUE(sessions[0]->kill_requested);
  EXPECT_FALSE(sessions[2]->kill_requested);
}

}  // namespace
}  // namespace server::net
