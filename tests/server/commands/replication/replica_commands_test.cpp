// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include "server/base/process/server_state.h"
#include "server/durability/durability.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ReplicaCommandsTest : public CommandTest {};

TEST_F(ReplicaCommandsTest, ReplicaOfMakesAReplicaAndNoOneALeader) {
  EXPECT_EQ(run({"REPLICAOF", "10.0.0.1", "6379"}), "+OK\r\n");
  EXPECT_TRUE(replication_.is_replica());
  EXPECT_EQ(run({"REPLICAOF", "10.0.0.1", "6379"}),
            "+OK Already connected to specified master\r\n");
  EXPECT_EQ(run({"SLAVEOF", "10.0.0.2", "6379"}), "+OK\r\n");
  EXPECT_THAT(run({"ROLE"}), HasSubstr("10.0.0.2\r\n:6379\r\n$7\r\nconnect\r\n:-1\r\n"));
  EXPECT_THAT(run({"CONFIG", "GET", "slaveof"}), HasSubstr("10.0.0.2 6379"));
  EXPECT_EQ(run({"REPLICAOF", "10.0.0.1", "0"}), "+OK\r\n") << "as in Redis";
  EXPECT_THAT(run({"CONFIG", "GET", "replicaof"}), HasSubstr("10.0.0.1 0"));
  EXPECT_EQ(run({"REPLICAOF", "no", "one"}), "+OK\r\n");
  EXPECT_EQ(run({"REPLICAOF", "NO", "ONE"}), "+OK\r\n") << "already";
  EXPECT_FALSE(replication_.is_replica());
  EXPECT_THAT(run({"ROLE"}), HasSubstr("master"));
}

TEST_F(ReplicaCommandsTest, WrongPortsChangeNothing) {
  for (const char* port : {"65536", "-1", "abc", ""}) {
    EXPECT_THAT(run({"REPLICAOF", "h", port}), is_error("ERR", "port"));
  }
  EXPECT_FALSE(replication_.is_replica());
}

TEST_F(ReplicaCommandsTest, InvalidHostChangesNothing) {
  for (const std::string host :
       {"h\nenable-debug-command yes", "h\r\nrole:master", "h x", "", "h\t", "a,port=1"}) {
    EXPECT_THAT(run({"REPLICAOF", host, "6379"}), is_error("ERR", "host")) << host;
    EXPECT_THAT(run({"SLAVEOF", host, "6379"}), is_error("ERR", "host")) << host;
  }
  EXPECT_FALSE(replication_.is_replica());
  EXPECT_THAT(run({"CONFIG", "GET", "replicaof"}), HasSubstr("$0\r\n\r\n"));
}

TEST_F(ReplicaCommandsTest, ReplicasAnnounceHostsAndPortsOnly) {
  for (const std::string host : {"1.2.3.4\r\nslave1:ip=6.6.6.6", "1.2.3.4,port=1", "a b"}) {
    EXPECT_THAT(run({"REPLCONF", "ip-address", host}), is_error("ERR", "ip-address"));
  }
  EXPECT_EQ(client_->session->replica_role().traits.address, "");
  EXPECT_EQ(run({"REPLCONF", "ip-address", "replica-1.example_net"}), kOk);
  EXPECT_EQ(run({"REPLCONF", "ip-address", ""}), kOk) << "takes it back";
  EXPECT_EQ(client_->session->replica_role().traits.address, "");
  EXPECT_THAT(run({"REPLCONF", "listening-port", "65536"}), StartsWith("-ERR"));
}

TEST_F(ReplicaCommandsTest, AnnouncedAddressMustBeAHost) {
  EXPECT_THAT(run({"CONFIG", "SET", "replica-announce-ip", "1.2.3.4\r\nslave1:x"}),
              StartsWith("-ERR CONFIG SET failed"));
  EXPECT_EQ(run({"CONFIG", "SET", "replica-announce-ip", "fe80::1%eth0"}), kOk);
  EXPECT_EQ(run({"CONFIG", "SET", "replica-announce-ip", ""}), kOk);
}

TEST_F(ReplicaCommandsTest, InsideATransaction) {
  run({"SET", "a", "1"});
  run({"MULTI"});
  run({"REPLICAOF", "h", "1"});
  run({"BGSAVE", "SCHEDULE"});
  EXPECT_THAT(run({"EXEC"}), StartsWith("*2\r\n+OK\r\n"));
  EXPECT_TRUE(replication_.is_replica());
  EXPECT_THAT(run({"SET", "a", "2"}), StartsWith("-READONLY"));
  EXPECT_EQ(run({"GET", "a"}), "$1\r\n1\r\n");
}

// If a write is executed after the server has become a replica, the server records that its data
// differ from the leader's.
TEST_F(ReplicaCommandsTest, OwnChangeRequiresFullSync) {
  run({"REPLICAOF", "h", "1"});
  EXPECT_FALSE(replication_.has_diverged());
  durability_.availability.end(Availability::kReadOnlyReplica);
  run({"GET", "a"});
  run({"DEL", "a"});
  EXPECT_FALSE(replication_.has_diverged());
  run({"SET", "a", "1"});
  EXPECT_TRUE(replication_.has_diverged());
}

TEST_F(ReplicaCommandsTest, AWritableReplicaMayHaveChangesOfItsOwn) {
  run({"CONFIG", "SET", "replica-read-only", "no"});
  run({"REPLICAOF", "h", "1"});
  EXPECT_EQ(run({"SET", "a", "1"}), "+OK\r\n");
  EXPECT_FALSE(replication_.has_diverged());
}

}  // namespace
}  // namespace server
