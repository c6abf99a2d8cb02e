// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "server/replication/replica_controller.h"
#include "tests/support/replica_fixture.h"

namespace server {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class ReplicaSectionTest : public ReplicaFixture {
 protected:
  std::string field(const std::string& name) { return info("replication", name); }
  // Returns the names of the first `count` fields of INFO replication, beginning with `role`.
  std::vector<std::string> first_fields(size_t count) {
    const std::string text = run({"INFO", "replication"});
    std::vector<std::string> names;
    size_t at = text.find("role:");
    while (names.size() < count) {
      names.push_back(text.substr(at, text.find(':', at) - at));
      at = text.find("\r\n", at) + 2;
    }
    return names;
  }
};

TEST_F(ReplicaSectionTest, ALeaderHasNone) {
  EXPECT_EQ(field("role"), "master");
  EXPECT_EQ(field("master_link_status"), "(none)");
  EXPECT_EQ(field("slave_priority"), "(none)");
}

TEST_F(ReplicaSectionTest, StandsInTheOrderOfRedis) {
  ask_to_follow(played_);
  EXPECT_THAT(first_fields(7), ElementsAre("role", "master_host", "master_port",
                                           "master_link_status", "master_last_io_seconds_ago",
                                           "master_sync_in_progress", "slave_read_repl_offset"));
}

TEST_F(ReplicaSectionTest, NamesTheLeaderBeforeTheLinkIsUp) {
  ask_to_follow(played_);
  EXPECT_EQ(field("role"), "slave");
  EXPECT_EQ(field("master_host"), "127.0.0.1");
  EXPECT_EQ(field("master_port"), std::to_string(played_.port()));
  EXPECT_EQ(field("master_link_status"), "down");
  EXPECT_EQ(field("master_last_io_seconds_ago"), "-1");
}

TEST_F(ReplicaSectionTest, TellsHowLongTheLinkHasBeenDown) {
  ask_to_follow(played_);
  advance_ms(5000);
  EXPECT_EQ(field("master_link_down_since_seconds"), "5");
}

TEST_F(ReplicaSectionTest, ShowsWhatIsSetForReplicas) {
  run({"CONFIG", "SET", "replica-priority", "42", "replica-announced", "no", "replica-read-only",
       "no"});
  ask_to_follow(played_);
  EXPECT_EQ(field("slave_priority"), "42");
  EXPECT_EQ(field("replica_announced"), "0");
  EXPECT_EQ(field("slave_read_only"), "0");
  run({"CONFIG", "SET", "replica-read-only", "yes"});
  EXPECT_EQ(field("slave_read_only"), "1");
}

TEST_F(ReplicaSectionTest, AnUpLinkHasTheLeadersIdAndOffset) {
  begin_stream(kEmptySnapshot, 100);
  const std::string set = command({"SET", "a", "1"});
  played_.say(set);
  await_applied(100 + set.size());
  EXPECT_EQ(field("master_link_status"), "up");
  EXPECT_EQ(field("master_replid"), played_.kId);
  EXPECT_EQ(field("master_link_down_since_seconds"), "(none)");
  EXPECT_EQ(field("master_link_down_reason"), "(none)");
  // The simulated leader sends GETACK after the SET, so the offset also counts the bytes of GETACK.
  const std::string question = command({"REPLCONF", "GETACK", "*"});
  const std::string end = std::to_string(100 + set.size() + question.size());
  await([&] { return field("slave_repl_offset") == end; });
  EXPECT_EQ(field("slave_read_repl_offset"), end);
}

TEST_F(ReplicaSectionTest, CountsTheSecondsOfSilence) {
  begin_stream(kEmptySnapshot);
  EXPECT_EQ(field("master_last_io_seconds_ago"), "0");
  advance_ms(3000);
  EXPECT_EQ(field("master_last_io_seconds_ago"), "3");
}

TEST_F(ReplicaSectionTest, ASnapshotOnItsWayHasItsSize) {
  ask_to_follow(played_);
  played_.await_psync();
  played_.say("+FULLRESYNC " + played_.kId + " 0\r\n$1000\r\n" + std::string(250, 'x'));
  await([this] { return replica_controller_.figures().sync_received == 250; });
  EXPECT_EQ(field("master_sync_in_progress"), "1");
  EXPECT_EQ(field("master_sync_total_bytes"), "1000");
  EXPECT_EQ(field("master_sync_read_bytes"), "250");
  EXPECT_EQ(field("master_sync_left_bytes"), "750");
  EXPECT_EQ(field("master_sync_perc"), "25.00");
  EXPECT_EQ(field("master_sync_last_io_seconds_ago"), "0");
}

TEST_F(ReplicaSectionTest, ASnapshotThatAMarkEndsHasNoSize) {
  ask_to_follow(played_);
  played_.await_psync();
  played_.say("+FULLRESYNC " + played_.kId + " 0\r\n$EOF:" + played_.kMark + "\r\n" +
              std::string(250, 'x'));
  await([this] { return replica_controller_.figures().sync_received > 0; });
  EXPECT_EQ(field("master_sync_total_bytes"), "0");
  EXPECT_EQ(field("master_sync_perc"), "0.00");
}

TEST_F(ReplicaSectionTest, ALinkThatWasLostTellsWhy) {
  begin_stream(kEmptySnapshot);
  played_.hang_up();
  await([this] { return field("master_link_status") == "down"; });
  EXPECT_NE(field("master_link_down_reason"), "(none)");
  EXPECT_EQ(field("master_link_down_since_seconds"), "0");
}

TEST_F(ReplicaSectionTest, RoleTellsTheSame) {
  EXPECT_THAT(run({"ROLE"}), StartsWith("*3\r\n$6\r\nmaster\r\n"));
  ask_to_follow(played_);
  const std::string port = std::to_string(played_.port());
  EXPECT_THAT(run({"ROLE"}),
              MatchesRegex("\\*5\r\n.5\r\nslave\r\n.9\r\n127.0.0.1\r\n:" + port +
                           "\r\n.[0-9]+\r\n(connect|connecting|handshake)\r\n:-1\r\n"));
  played_.await_psync();
  played_.full_resync(kEmptySnapshot, 100);
  await_link();
  EXPECT_EQ(run({"ROLE"}), array({bulk("slave"), bulk("127.0.0.1"), integer(played_.port()),
                                  bulk("connected"), integer(100)}));
}

}  // namespace
}  // namespace server
