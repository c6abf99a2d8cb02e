// SPDX-License-Identifier: MIT
#include "server/replication/stream/own_expiries.h"

#include "core/keyspace/keyspace.h"
#include "server/replication/stream/replication.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

class OwnExpiriesTest : public CommandTest {
 protected:
  void follow_writable() {
    run({"CONFIG", "SET", "replica-read-only", "no"});
    ASSERT_EQ(run({"REPLICAOF", "127.0.0.1", "1"}), kOk);
  }
  void tick() {
    while (!replication_.own_expiries().tick(keyspace_, clock_.now_ms)) {
    }
  }
  uint64_t size() { return keyspace_.db_size(0); }
};

TEST_F(OwnExpiriesTest, AWritableReplicaDeletesWhatItsClientsWrote) {
  run({"SET", "leaders", "1", "PX", "100"});
  follow_writable();
  run({"SET", "a", "1", "PX", "100"});
  run({"SET", "b", "1"});
  run({"PEXPIRE", "b", "100"});
  run({"SET", "later", "1", "PX", "1000"});
  run({"SET", "stays", "1"});
  tick();
  EXPECT_EQ(replication_.own_expiries().size(), 3U) << "what does not expire is forgotten";
  advance_ms(200);
  tick();
  EXPECT_EQ(size(), 3U) << "the leader says when its own key has expired";
  EXPECT_EQ(run({"INFO", "stats"}).find("expired_keys:0"), std::string::npos);
  advance_ms(1000);
  tick();
  EXPECT_EQ(size(), 2U);
  EXPECT_EQ(replication_.own_expiries().size(), 0U);
}

TEST_F(OwnExpiriesTest, APersistedKeyStaysAndOneExpiredAgainGoes) {
  follow_writable();
  run({"SET", "a", "1", "PX", "100"});
  run({"PERSIST", "a"});
  tick();
  advance_ms(200);
  tick();
  EXPECT_EQ(size(), 1U);
  run({"PEXPIRE", "a", "100"});
  advance_ms(200);
  tick();
  EXPECT_EQ(size(), 0U);
}

TEST_F(OwnExpiriesTest, MoreKeysThanOneTickTakes) {
  follow_writable();
  for (int i = 0; i < 2500; ++i) run({"SET", "k" + std::to_string(i), "1", "PX", "100"});
  advance_ms(200);
  tick();
  EXPECT_EQ(size(), 0U);
}

TEST_F(OwnExpiriesTest, APromotionForgetsThem) {
  follow_writable();
  run({"SET", "a", "1", "PX", "100"});
  ASSERT_EQ(run({"REPLICAOF", "NO", "ONE"}), kOk);
  EXPECT_EQ(replication_.own_expiries().size(), 0U);
}

}  // namespace
}  // namespace server
