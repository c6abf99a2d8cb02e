// SPDX-License-Identifier: MIT
#include "server/session/clients.h"

#include <gtest/gtest.h>

#include "server/session/pubsub/subscriptions.h"

namespace server {
namespace {

class ClientsTest : public ::testing::Test {
 protected:
  std::shared_ptr<Client> add(uint64_t bytes) {
    auto client = std::make_shared<Client>(clients_.next_id());
    client->query_buffer_bytes = bytes;
    clients_.add(client);
    return client;
  }
  void grow(Client& client, uint64_t bytes) {
    client.query_buffer_bytes = bytes;
    clients_.count_memory(client);
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
  EXPECT_EQ(clients_.evicted_count(), 1U) << "a client that is being closed does not count";
  clients_.evict_over(300'000);
  EXPECT_TRUE(big->kill_requested);
  EXPECT_FALSE(small->kill_requested);
}

TEST_F(ClientsTest, GrowthIsActedOnAtOnce) {
  const auto first = add(100'000);
  const auto second = add(100'000);
  EXPECT_FALSE(clients_.keep_below(uint64_t{1} << 63)) << "maxmemory-clients 9223372036854775807";
  clients_.keep_below(300'000);
  EXPECT_EQ(clients_.evicted_count(), 0U);
  grow(*second, 250'000);
  clients_.keep_below(300'000);
  EXPECT_TRUE(second->kill_requested);
  EXPECT_FALSE(first->kill_requested);
  EXPECT_EQ(clients_.list(), std::vector{first});
  EXPECT_EQ(clients_.find(second->id), nullptr);
  // The server is already closing the client `second`, so it must not evict `second` again when its
  // memory grows.
  grow(*second, 900'000);
  clients_.remove(second->id);
  clients_.keep_below(300'000);
  EXPECT_EQ(clients_.evicted_count(), 1U);
}

TEST_F(ClientsTest, EvictionStopsBelowTheLimit) {
  std::vector<std::shared_ptr<Client>> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(add(1'000'000));
  const uint64_t bytes = clients[0]->memory_bytes();
  clients_.keep_below(5 * bytes + 1);
  EXPECT_EQ(clients_.evicted_count(), 5U);
  clients_.evict_over(5 * bytes + 1);
  EXPECT_EQ(clients_.evicted_count(), 5U);
}

TEST_F(ClientsTest, KilledClientsMakeRoom) {
  const auto killed = add(900'000);
  const auto other = add(100'000);
  killed->request_kill();
  clients_.keep_below(500'000);
  EXPECT_FALSE(other->kill_requested);
  EXPECT_EQ(clients_.evicted_count(), 0U);
}

TEST_F(ClientsTest, EvictedClientsAreClosingUntilTheyAreRemoved) {
  const auto big = add(900'000);
  const auto small = add(100'000);
  const uint64_t big_bytes = big->memory_bytes();
  clients_.keep_below(500'000);
  EXPECT_EQ(clients_.closing_bytes(), big_bytes);
  clients_.keep_below(500'000);
  EXPECT_EQ(clients_.closing_bytes(), big_bytes);
  clients_.remove(small->id);
  EXPECT_EQ(clients_.closing_bytes(), big_bytes);
  clients_.remove(big->id);
  EXPECT_EQ(clients_.closing_bytes(), 0U);
}

TEST_F(ClientsTest, EvictedClientsAreCountedAsTheyChange) {
  const auto big = add(900'000);
  EXPECT_TRUE(clients_.keep_below(500'000));
  // After a client is evicted, its memory may change until its I/O thread closes the connection.
  // closing_bytes() must include each change.
  big->output_buffer_capacity_bytes = 2'000'000;
  clients_.count_memory(*big);
  EXPECT_EQ(clients_.closing_bytes(), big->memory_bytes());
  big->output_buffer_capacity_bytes = 0;
  clients_.count_memory(*big);
  EXPECT_EQ(clients_.closing_bytes(), big->memory_bytes());
  EXPECT_FALSE(clients_.keep_below(500'000)) << "it does not count any longer";
}

TEST_F(ClientsTest, MemoryIsSummedByKind) {
  add(1'000);
  add(2'000);
  add(5'000)->peer = Peer::kReplica;
  const uint64_t empty_bytes = Client(1).memory_bytes();
  EXPECT_EQ(clients_.memory().normal_bytes, 3'000 + 2 * empty_bytes);
  EXPECT_EQ(clients_.memory().replica_bytes, 5'000 + empty_bytes);
}

TEST_F(ClientsTest, WithNothingToEvictTheTaskTriesAgain) {
  const auto precious = add(900'000);
  precious->no_evict = true;
  clients_.keep_below(500'000);
  precious->no_evict = false;
  clients_.keep_below(500'000);
  EXPECT_FALSE(precious->kill_requested) << "a fruitless search is not repeated at once";
  clients_.evict_over(500'000);
  EXPECT_TRUE(precious->kill_requested);
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
  for (const auto& client : {replica, leader, precious}) EXPECT_FALSE(client->kill_requested);
}

TEST_F(ClientsTest, SubscriptionsAndWatchesAndQueuesCount) {
  const auto client = add(0);
  const uint64_t before = client->memory_bytes();
  const std::string name(100'000, 'c');
  Subscriptions subscriptions(client->subscriptions);
  subscriptions.add(SubscriptionKind::kChannel, name, 1);
  EXPECT_GE(client->memory_bytes(), before + name.size());
  subscriptions.remove(SubscriptionKind::kChannel, name);
  EXPECT_EQ(client->memory_bytes(), before);
  client->watched_bytes = 5'000;
  client->queued_bytes = 5'000;
  EXPECT_EQ(client->memory_bytes(), before + 10'000);
}

}  // namespace
}  // namespace server
