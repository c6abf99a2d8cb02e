// SPDX-License-Identifier: MIT
#include "server/session/clients.h"

#include <gtest/gtest.h>

namespace server {
namespace {

class ClientsTest : public ::testing::Test {
 protected:
  std::shared_ptr<Session> add(uint64_t bytes) {
    auto session = std::make_shared<Session>(clients_.next_id());
    session->query_buffer_bytes = bytes;
    clients_.add(session);
    return session;
  }
  Clients clients_;
};

TEST_F(ClientsTest, TheBiggestGoFirst) {
  const auto small = add(100'000);
  const auto biggest = add(900'000);
  const auto big = add(500'000);
  clients_.evict_over(2'000'000);
  EXPECT_EQ(clients_.evicted_count(), 0U);
  clients_.evict_over(700'000);
  EXPECT_TRUE(biggest->kill_requested);
  EXPECT_FALSE(big->kill_requested);
  EXPECT_EQ(clients_.evicted_count(), 1U);
  clients_.evict_over(700'000);
  EXPECT_EQ(clients_.evicted_count(), 1U) << "one that is being closed counts no more";
  clients_.evict_over(300'000);
  EXPECT_TRUE(big->kill_requested);
  EXPECT_FALSE(small->kill_requested);
}

TEST_F(ClientsTest, SomeAreLeftAlone) {
  const auto replica = add(9'000'000);
  replica->peer = Peer::kReplica;
  const auto leader = add(9'000'000);
  leader->peer = Peer::kLeader;
  const auto precious = add(9'000'000);
  precious->no_evict = true;
  const auto other = add(1'000);
  clients_.evict_over(1'000'000);
  EXPECT_TRUE(other->kill_requested) << "the precious one counts";
  for (const auto& session : {replica, leader, precious}) EXPECT_FALSE(session->kill_requested);
}

TEST_F(ClientsTest, SubscriptionsAndWatchesAndQueuesCount) {
  const auto session = add(0);
  const uint64_t before = session->memory_bytes();
  const std::string name(100'000, 'c');
  session->subscriptions.add(SubscriptionKind::kChannel, name, 1);
  EXPECT_GE(session->memory_bytes(), before + name.size());
  session->subscriptions.remove(SubscriptionKind::kChannel, name);
  EXPECT_EQ(session->memory_bytes(), before);
  session->watched_bytes = 5'000;
  session->queued_bytes = 5'000;
  EXPECT_EQ(session->memory_bytes(), before + 10'000);
}

}  // namespace
}  // namespace server
