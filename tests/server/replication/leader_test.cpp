// SPDX-License-Identifier: MIT
//
// Leader over pairs of sockets, with its thread but without a process: who is told what, and when.
#include "server/replication/leader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "tests/support/command_test.h"

namespace server {
namespace {

class LeaderTest : public CommandTest {
 protected:
  // A client whose socket the test holds the other end of.
  struct Remote {
    explicit Remote(LeaderTest& test) : client(test) {
      ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data());
      for (const int end : ends) ::fcntl(end, F_SETFL, O_NONBLOCK);
      client.session->descriptor = ends[0];
      client.session->replica.knows_psync2 = true;
    }
    ~Remote() {
      client.dispatcher.end_session();
      for (const int end : ends) ::close(end);
    }
    Remote(const Remote&) = delete;
    Remote& operator=(const Remote&) = delete;

    // What has come once it is at least so long, or nothing more has come for a second.
    std::string read(size_t size) {
      std::string all;
      std::array<char, 4096> buffer;
      while (all.size() < size) {
        pollfd waited{ends[1], POLLIN, 0};
        if (::poll(&waited, 1, 1000) <= 0) break;
        const ssize_t got = ::read(ends[1], buffer.data(), buffer.size());
        if (got <= 0) break;
        all.append(buffer.data(), static_cast<size_t>(got));
      }
      return all;
    }

    std::array<int, 2> ends{};
    Client client;
  };

  LeaderTest() {
    replication_.begin_backlog();
    replication_.start();
  }
  ~LeaderTest() override { replication_.stop(); }

  Leader& leader() { return replication_.leader(); }
  std::string go_on() { return "+CONTINUE " + replication_.ids().id + "\r\n"; }
  std::string psync(Remote& peer, uint64_t offset) {
    return peer.client.run({"PSYNC", replication_.ids().id, std::to_string(offset + 1)});
  }

  const std::string kSet = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
};

TEST_F(LeaderTest, SendsWhatIsMissedAndWhatFollows) {
  run({"SELECT", "0"});
  run({"SET", "a", "1"});
  const uint64_t before = replication_.offset() - kSet.size();
  Remote peer(*this);
  EXPECT_EQ(psync(peer, before), "");
  EXPECT_EQ(peer.read(go_on().size() + kSet.size()), go_on() + kSet);
  run({"SET", "a", "1"});
  EXPECT_EQ(peer.read(kSet.size()), kSet);
  EXPECT_EQ(leader().counters().partial_syncs, 1);
}

TEST_F(LeaderTest, AReplicasConnectionAnswersNothing) {
  Remote peer(*this);
  EXPECT_EQ(psync(peer, replication_.offset()), "");
  EXPECT_EQ(peer.client.run({"PING"}), "");
  EXPECT_EQ(peer.client.run({"NOSUCH"}), "");
  EXPECT_EQ(peer.client.run({"PSYNC", "?", "-1"}), "");
  EXPECT_EQ(leader().count(), 1);
}

TEST_F(LeaderTest, CountsWhatIsAcknowledged) {
  Remote first(*this);
  Remote second(*this);
  psync(first, replication_.offset());
  psync(second, replication_.offset());
  run({"SET", "a", "1"});
  const std::string end = std::to_string(replication_.offset());
  EXPECT_EQ(leader().count_acked(replication_.offset()), 0);
  first.client.run({"REPLCONF", "ACK", end});
  EXPECT_EQ(leader().count_acked(replication_.offset()), 1);
  second.client.run({"REPLCONF", "ACK", end, "FACK", end});
  EXPECT_EQ(leader().count_acked(replication_.offset()), 2);
  EXPECT_EQ(leader().count_synced(replication_.offset()), 1);
  EXPECT_EQ(run({"WAIT", "2", "0"}), integer(2));
  EXPECT_EQ(run({"WAITAOF", "0", "1", "0"}), array({integer(0), integer(1)}));
}

TEST_F(LeaderTest, WritesAreRefusedWithoutEnoughReplicas) {
  EXPECT_EQ(run({"CONFIG", "SET", "min-replicas-to-write", "1"}), kOk);
  const std::string refused = error("NOREPLICAS Not enough good replicas to write.");
  EXPECT_EQ(run({"SET", "a", "1"}), refused);
  {
    Remote peer(*this);
    psync(peer, replication_.offset());
    EXPECT_EQ(run({"SET", "a", "1"}), kOk);
  }
  EXPECT_EQ(run({"SET", "a", "1"}), refused);
}

TEST_F(LeaderTest, AReplicaIsCutOffWhenTheStreamIsReplaced) {
  Remote peer(*this);
  psync(peer, replication_.offset());
  EXPECT_EQ(peer.read(go_on().size()), go_on());
  leader().drop_all();
  EXPECT_TRUE(peer.client.session->kill_requested);
  pollfd waited{peer.ends[1], POLLIN, 0};
  EXPECT_EQ(::poll(&waited, 1, 1000), 1);
  EXPECT_EQ(leader().count(), 0);
}

TEST_F(LeaderTest, AReplicaWithoutItsLeaderServesNobody) {
  {
    const std::scoped_lock lock(replication_.apply_mutex());
    const auto stripes =
        keyspace_.lock(core::keyspace::kAllStripes, core::keyspace::LockMode::kExclusive);
    replication_.become_replica();
  }
  Remote peer(*this);
  EXPECT_EQ(psync(peer, 0), error("NOMASTERLINK Can't SYNC while not connected with my master"));
  replication_.set_link_up(true);
  EXPECT_EQ(psync(peer, replication_.offset()), "");
  EXPECT_EQ(peer.read(go_on().size()), go_on());
}

}  // namespace
}  // namespace server
