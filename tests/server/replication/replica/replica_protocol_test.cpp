// SPDX-License-Identifier: MIT
#include "server/replication/replica/replica_protocol.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/clock.h"
#include "server/base/process/availability.h"
#include "server/commands/connection/connection_commands.h"
#include "server/commands/replication/replication_commands.h"
#include "server/dispatch/permissions.h"
#include "tests/support/environment.h"
#include "tests/support/error_matcher.h"
#include "tests/support/stream_bytes.h"

namespace server {
namespace {

using Event = ReplicaProtocol::Event;
using Phase = ReplicaProtocol::Phase;

const std::string kId = "0123456789abcdef0123456789abcdef01234567";
const std::string kOtherId = "fedcba9876543210fedcba9876543210fedcba98";
const std::string kMark = "MARKMARKMARKMARKMARKMARKMARKMARKMARKMARK";
// The leader's replies to PING and to the settings of a replica, without and with data.
const std::string kGreeting = "+PONG\r\n+OK\r\n+OK\r\n";
const std::string kGreetingWithData = kGreeting + "+OK\r\n";

ReplicaProtocol::Request request(std::string id = "", int64_t offset = 0) {
  ReplicaProtocol::Request request;
  request.listening_port = 6380;
  request.id = std::move(id);
  request.offset = offset;
  return request;
}

// Feeds received bytes to a ReplicaProtocol and records all its events. Reports each complete
// snapshot as loaded immediately.
struct TestReplica {
  explicit TestReplica(ReplicaProtocol::Request asked, int64_t now = 0)
      : link(std::move(asked), now), now_us(now) {}

  void receive(std::string_view bytes) {
    link.receive(bytes, now_us);
    run();
  }
  void run() {
    for (Event event = link.next(); event != Event::kNone; event = link.next()) record(event);
    sent += link.take_output();
  }
  void record(Event event) {
    switch (event) {
      case Event::kFullSync:
        events += fmt::format("full {} {};", link.id(), link.offset());
        break;
      case Event::kSnapshotBytes:
        snapshot += link.snapshot_bytes();
        break;
      case Event::kSnapshotEnd:
        events += "loaded;";
        link.loaded(now_us);
        break;
      case Event::kContinue:
        events += fmt::format("continue {} {};", link.id(), link.offset());
        break;
      case Event::kUnit:
        stream += link.unit().bytes();
        if (!link.is_unit_of_link()) events += "unit;";
        break;
      case Event::kFailed:
        events += "failed;";
        break;
      case Event::kNone:
        break;
    }
  }

  ReplicaProtocol link;
  int64_t now_us;
  std::string sent;
  std::string events;
  std::string snapshot;
  std::string stream;
};

TEST(ReplicaProtocolTest, TheHandshakeAsksOneThingAfterTheOther) {
  auto asked = request();
  asked.user = "replica";
  asked.password = "secret";
  asked.announced_address = "10.0.0.7";
  TestReplica replica(asked);
  replica.run();
  EXPECT_EQ(replica.sent, command({"PING"}));
  replica.sent.clear();
  replica.receive(encoded_error(kNotAuthenticated));
  EXPECT_EQ(replica.sent,
            command({"AUTH", "replica", "secret"}) +
                command({"REPLCONF", "listening-port", "6380"}) +
                command({"REPLCONF", "ip-address", "10.0.0.7"}) +
                command({"REPLCONF", "capa", "eof", "capa", "psync2", "capa", "bloomery"}));
  replica.sent.clear();
  replica.receive("+OK\r\n-ERR unknown option\r\n+OK\r\n");
  EXPECT_EQ(replica.sent, "") << "three of four have been answered";
  replica.receive("+OK\r\n");
  EXPECT_EQ(replica.sent, command({"PSYNC", "?", "-1"}));
}

TEST(ReplicaProtocolTest, APasswordAloneIsTheDefaultUsers) {
  auto asked = request();
  asked.password = "secret";
  TestReplica replica(asked);
  replica.receive("+PONG\r\n");
  EXPECT_NE(replica.sent.find(command({"AUTH", "secret"})), std::string::npos);
  replica.receive(encoded_error(kWrongPassword));
  EXPECT_EQ(replica.events, "failed;");
  EXPECT_NE(replica.link.failure().find("WRONGPASS"), std::string::npos);
}

TEST(ReplicaProtocolTest, DataThatIsThereAsksToContinue) {
  TestReplica replica(request(kId, 499));
  replica.receive(kGreetingWithData);
  EXPECT_TRUE(replica.sent.ends_with(command({"PSYNC", kId, "500"})));
  replica.receive("\n\n+CONTINUE " + kOtherId + "\r\n" + command({"SET", "a", "1"}));
  EXPECT_EQ(replica.events, fmt::format("continue {} 499;unit;", kOtherId));
  EXPECT_EQ(replica.link.offset(), 499 + static_cast<int64_t>(command({"SET", "a", "1"}).size()));
}

TEST(ReplicaProtocolTest, ContinueWithoutAnIdKeepsTheOldOne) {
  TestReplica replica(request(kId, 0));
  replica.receive(kGreetingWithData + "+CONTINUE\r\n");
  EXPECT_EQ(replica.events, fmt::format("continue {} 0;", kId));
}

TEST(ReplicaProtocolTest, TakingOverSaysSo) {
  auto asked = request(kId, 9);
  asked.takes_over = true;
  TestReplica replica(asked);
  replica.receive(kGreetingWithData);
  EXPECT_TRUE(replica.sent.ends_with(command({"PSYNC", kId, "10", "FAILOVER"})));
  replica.receive("-ERR no\r\n");
  EXPECT_EQ(replica.events, "failed;") << "and not SYNC";
}

TEST(ReplicaProtocolTest, BothFormsOfASnapshotAndTheStreamBehindIt) {
  const std::string body = "REDIS" + kMark.substr(0, 39) + std::string(1000, '\0') + "\r\n$5\r\n";
  const std::string set = command({"SET", "a", "1"});
  for (const bool has_mark : {false, true}) {
    TestReplica replica(request());
    const std::string payload = has_mark ? "$EOF:" + kMark + "\r\n" + body + kMark
                                         : fmt::format("${}\r\n{}", body.size(), body);
    replica.receive(kGreeting + "+FULLRESYNC " + kId + " 1000\r\n\n" + payload + set);
    EXPECT_EQ(replica.events, fmt::format("full {} 1000;loaded;unit;", kId));
    EXPECT_EQ(replica.snapshot, body);
    EXPECT_EQ(replica.stream, set);
    EXPECT_TRUE(replica.sent.ends_with(command({"REPLCONF", "ACK", "1000"})));
  }
}

// Returns the bytes that a leader sends in a session with all its phases: handshake, snapshot and
// stream.
std::string session_bytes(bool has_mark) {
  const std::string body = kMark.substr(0, 20) + "REDIS0011" + kMark.substr(0, 39) + "x";
  return "\n" + kGreeting + "\n\n+FULLRESYNC " + kId + " 70\r\n\n\n" +
         (has_mark ? "$EOF:" + kMark + "\r\n" + body + kMark
                   : fmt::format("${}\r\n{}", body.size(), body)) +
         command({"SELECT", "3"}) + command({"MULTI"}) + command({"SET", "a", "1"}) +
         command({"EXEC"}) + command({"PING"}) + command({"REPLCONF", "GETACK", "*"}) +
         command({"DEL", "a"});
}

TEST(ReplicaProtocolTest, EveryCutGivesTheSame) {
  for (const bool has_mark : {false, true}) {
    const std::string bytes = session_bytes(has_mark);
    TestReplica whole(request());
    whole.receive(bytes);
    ASSERT_EQ(whole.events, fmt::format("full {} 70;loaded;unit;unit;unit;", kId));
    for (size_t cut = 0; cut <= bytes.size(); ++cut) {
      TestReplica replica(request());
      replica.receive(std::string_view(bytes).substr(0, cut));
      replica.receive(std::string_view(bytes).substr(cut));
      ASSERT_EQ(replica.events, whole.events) << "cut at " << cut;
      ASSERT_EQ(replica.snapshot, whole.snapshot) << "cut at " << cut;
      ASSERT_EQ(replica.stream, whole.stream) << "cut at " << cut;
      ASSERT_EQ(replica.sent, whole.sent) << "cut at " << cut;
      ASSERT_EQ(replica.link.offset(), whole.link.offset());
    }
  }
}

TEST(ReplicaProtocolTest, RandomPiecesGiveTheSame) {
  const uint64_t seed = support::number_of("BLOOMERY_SEED", 1);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 500; ++round) {
    const std::string bytes = session_bytes(round % 2 == 0);
    TestReplica whole(request());
    whole.receive(bytes);
    TestReplica replica(request());
    for (std::string_view rest = bytes; !rest.empty();) {
      const size_t size = std::min<size_t>(rest.size(), 1 + random() % 50);
      replica.receive(rest.substr(0, size));
      rest.remove_prefix(size);
    }
    ASSERT_EQ(replica.events, whole.events);
    ASSERT_EQ(replica.snapshot, whole.snapshot);
    ASSERT_EQ(replica.stream, whole.stream);
    ASSERT_EQ(replica.sent, whole.sent);
  }
}

TEST(ReplicaProtocolTest, AcksGoOutEachSecondAndWhenAsked) {
  TestReplica replica(request(kId, 100));
  replica.receive(kGreetingWithData + "+CONTINUE\r\n");
  replica.sent.clear();
  replica.link.tick(replica.now_us);
  replica.run();
  EXPECT_EQ(replica.sent, command({"REPLCONF", "ACK", "100"}));
  replica.sent.clear();
  replica.link.tick(replica.now_us + core::kSecondUs - 1);
  replica.run();
  EXPECT_EQ(replica.sent, "");
  const std::string ping = command({"PING"});
  const std::string question = command({"REPLCONF", "GETACK", "*"});
  ASSERT_EQ(question.size(), 37U);
  replica.receive(ping + question + ping);
  EXPECT_EQ(replica.sent, command({"REPLCONF", "ACK", fmt::format("{}", 100 + ping.size())}));
  EXPECT_EQ(replica.events, fmt::format("continue {} 100;", kId)) << "none of them is data";
  EXPECT_EQ(replica.stream, ping + question + ping) << "but all are bytes of the stream";
  replica.sent.clear();
  replica.link.tick(replica.now_us);
  replica.run();
  EXPECT_EQ(replica.sent, command({"REPLCONF", "ACK", "165"})) << "the question is counted soon";
  replica.sent.clear();
  replica.link.set_log({50});
  replica.link.tick(replica.now_us + core::kSecondUs);
  replica.run();
  EXPECT_EQ(replica.sent, command({"REPLCONF", "ACK", "165", "FACK", "50"}));
}

TEST(ReplicaProtocolTest, AckReportsFailingLogInCluster) {
  auto asked = request(kId, 100);
  asked.cluster_node = std::string(40, 'b');
  TestReplica replica(asked);
  replica.receive(kGreetingWithData + "+CONTINUE\r\n");
  const auto acks = [&replica] {
    replica.sent.clear();
    replica.link.tick(replica.now_us);
    replica.run();
    return replica.sent;
  };
  EXPECT_EQ(acks(), command({"REPLCONF", "ACK", "100"}));
  replica.link.set_log({});
  EXPECT_EQ(acks(), "") << "no change";
  replica.link.set_log({.fails = true});
  EXPECT_EQ(acks(), command({"REPLCONF", "ACK", "100", "append-log", "fails"})) << "at once";
  EXPECT_EQ(acks(), "");
  replica.link.set_log({50, true});
  replica.now_us += core::kSecondUs;
  EXPECT_EQ(acks(), command({"REPLCONF", "ACK", "100", "FACK", "50", "append-log", "fails"}));
  replica.link.set_log({50});
  EXPECT_EQ(acks(), command({"REPLCONF", "ACK", "100", "FACK", "50"}));
}

TEST(ReplicaProtocolTest, OnlyLeadersOfClustersLearnOfTheLog) {
  TestReplica replica(request(kId, 100));
  replica.receive(kGreetingWithData + "+CONTINUE\r\n");
  replica.link.set_log({.fails = true});
  replica.sent.clear();
  replica.link.tick(replica.now_us);
  replica.run();
  EXPECT_EQ(replica.sent, command({"REPLCONF", "ACK", "100"}));
}

TEST(ReplicaProtocolTest, NoAckInsideAGroup) {
  TestReplica replica(request(kId, 0));
  replica.receive(kGreetingWithData + "+CONTINUE\r\n" + command({"MULTI"}) +
                  command({"SET", "a", "1"}));
  replica.sent.clear();
  replica.link.tick(core::kSecondUs);
  replica.run();
  EXPECT_EQ(replica.sent, command({"REPLCONF", "ACK", "0"}));
  EXPECT_EQ(replica.link.received_offset(),
            static_cast<int64_t>((command({"MULTI"}) + command({"SET", "a", "1"})).size()));
}

TEST(ReplicaProtocolTest, ASilentLeaderIsGivenUp) {
  const std::vector<std::string> said = {"", "+PONG\r\n", kGreeting,
                                         kGreeting + "+FULLRESYNC " + kId + " 1\r\n",
                                         kGreeting + "+FULLRESYNC " + kId + " 1\r\n$100\r\nREDIS"};
  for (const std::string& bytes : said) {
    TestReplica replica(request());
    replica.receive(bytes);
    replica.events.clear();
    replica.link.tick(60 * core::kSecondUs);
    replica.run();
    EXPECT_EQ(replica.events, "");
    replica.now_us = 60 * core::kSecondUs;
    replica.link.tick(60 * core::kSecondUs + 1);
    replica.run();
    EXPECT_EQ(replica.events, "failed;") << bytes;
    replica.run();
    EXPECT_EQ(replica.events, "failed;") << "it is reported once";
  }
}

TEST(ReplicaProtocolTest, EmptyLinesKeepTheLinkAlive) {
  TestReplica replica(request());
  replica.receive(kGreeting);
  replica.now_us = 59 * core::kSecondUs;
  replica.receive("\n");
  replica.link.tick(100 * core::kSecondUs);
  replica.run();
  EXPECT_EQ(replica.events, "");
}

TEST(ReplicaProtocolTest, ALongLoadIsNoSilence) {
  ReplicaProtocol link(request(), 0);
  link.receive(kGreeting + "+FULLRESYNC " + kId + " 1\r\n$1\r\nR", 0);
  while (link.next() != Event::kSnapshotEnd) {
  }
  (void)link.take_output();
  EXPECT_EQ(link.next(), Event::kNone);
  link.tick(500 * core::kSecondUs);
  link.keep_alive(500 * core::kSecondUs);
  EXPECT_EQ(link.take_output(), "\n");
  link.loaded(600 * core::kSecondUs);
  link.tick(600 * core::kSecondUs);
  EXPECT_EQ(link.phase(), Phase::kStream);
  EXPECT_EQ(link.take_output(), command({"REPLCONF", "ACK", "1"}));
}

TEST(ReplicaProtocolTest, AnOldLeaderIsAskedWithSync) {
  TestReplica replica(request(kId, 12));
  replica.receive(kGreetingWithData + "-ERR unknown command 'PSYNC'\r\n");
  EXPECT_TRUE(replica.sent.ends_with(command({"SYNC"})));
  EXPECT_EQ(replica.events, "full  0;");
  replica.receive("$3\r\nRDB" + command({"SET", "a", "1"}));
  EXPECT_EQ(replica.events, "full  0;loaded;unit;");
  EXPECT_EQ(replica.sent.find("ACK"), std::string::npos) << "it knows no offsets";
}

TEST(ReplicaProtocolTest, InvalidLeaderBytesEndTheLink) {
  const std::string psync = kGreeting;
  const std::string full = kGreeting + "+FULLRESYNC " + kId + " 1\r\n";
  const std::vector<std::string> said = {
      "-ERR something else\r\n",
      "$5\r\nhello\r\n",
      std::string(5000, 'x'),
      // A leader must not answer +CONTINUE if the replica requested a full sync.
      psync + "+CONTINUE\r\n",
      psync + "+FULLRESYNC\r\n",
      psync + "+FULLRESYNC \r\n",
      psync + "+FULLRESYNC " + kId + "\r\n",
      psync + "+FULLRESYNC " + kId + " \r\n",
      psync + "+FULLRESYNC " + kId + " -1\r\n",
      psync + "+FULLRESYNC " + kId + " 9223372036854775807\r\n",
      psync + "+FULLRESYNC " + kId + " 99999999999999999999999\r\n",
      psync + "+FULLRESYNC " + kId + " 12x\r\n",
      psync + "+FULLRESYNC " + kId.substr(1) + " 12\r\n",
      psync + "+FULLRESYNC " + kId.substr(1) + "! 12\r\n",
      psync + encoded_error(kNoSyncWithoutLeader),
      psync + encoded_error(kServerIsLoading),
      psync + "-NOPERM no\r\n",
      psync + "+OK\r\n",
      psync + ":1\r\n",
      full + "-ERR the save failed\r\n",
      full + "$\r\n",
      full + "$-1\r\n",
      full + "$-0\r\n",
      full + "$9223372036854775808\r\n",
      full + "$9223372036854775807\r\n",
      full + "$12x\r\n",
      full + "$EOF:short\r\n",
      full + "$EOF:" + kMark + "X\r\n",
      full + "*1\r\n$4\r\nPING\r\n",
      full + std::string(5000, '$'),
  };
  for (const std::string& bytes : said) {
    for (const bool in_pieces : {false, true}) {
      TestReplica replica(request());
      if (in_pieces) {
        for (const char byte : bytes) replica.receive({&byte, 1});
      } else {
        replica.receive(bytes);
      }
      EXPECT_EQ(replica.link.phase(), Phase::kFailed) << bytes;
      EXPECT_TRUE(replica.events.ends_with("failed;")) << bytes;
      EXPECT_FALSE(replica.link.failure().empty());
      const std::string events = replica.events;
      replica.receive(full);
      EXPECT_EQ(replica.events, events) << "nothing happens on a link that failed";
    }
  }
}

// If a replica reconnected and continued at its offset, it would receive the same oversized command
// again. So it must request a full sync.
TEST(ReplicaProtocolTest, AUnitThatIsTooBigNeedsAFullSync) {
  auto asked = request(kId, 7);
  asked.unit_bytes_max = 1000;
  TestReplica replica(std::move(asked));
  replica.receive(kGreetingWithData + "+CONTINUE\r\n" +
                  command({"SET", "a", std::string(900, 'x')}));
  EXPECT_EQ(replica.link.phase(), Phase::kStream);
  EXPECT_FALSE(replica.link.needs_full_sync());
  replica.receive(command({"MULTI"}) + command({"SET", "a", std::string(500, 'x')}) +
                  command({"SET", "b", std::string(500, 'x')}) + command({"EXEC"}));
  EXPECT_EQ(replica.link.phase(), Phase::kFailed);
  EXPECT_TRUE(replica.link.needs_full_sync());
}

TEST(ReplicaProtocolTest, AnEmptySnapshotEndsAtOnce) {
  TestReplica replica(request());
  replica.receive(kGreeting + "+FULLRESYNC " + kId + " 1\r\n$0\r\n");
  EXPECT_EQ(replica.events, fmt::format("full {} 1;loaded;", kId));
  EXPECT_EQ(replica.snapshot, "");
}

// A snapshot may contain many beginnings of its end mark. The replica buffers only the last
// received bytes, and only while they may be the beginning of the mark.
TEST(ReplicaProtocolTest, ASnapshotWithoutEndTakesNoMemory) {
  TestReplica replica(request());
  replica.receive(kGreeting + "+FULLRESYNC " + kId + " 0\r\n$EOF:" + kMark + "\r\n");
  std::string beginnings;
  for (int i = 0; i < 1000; ++i) beginnings += kMark.substr(0, 39);
  size_t sent = 0;
  for (int i = 0; i < 100; ++i) {
    replica.receive(beginnings);
    sent += beginnings.size();
    EXPECT_GT(replica.snapshot.size() + kMark.size(), sent);
  }
  EXPECT_EQ(replica.link.phase(), Phase::kSnapshot);
}

// Damages random bytes of a session. The link may end or continue, but must not crash or return
// bytes that the leader did not send.
TEST(ReplicaProtocolTest, DamagedBytesDoNoHarm) {
  const uint64_t seed = support::number_of("BLOOMERY_SEED", 1);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = session_bytes(round % 2 == 0);
    for (size_t left = 1 + random() % 6; left > 0; --left) {
      const size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, random() % 20);
          break;
        default:
          bytes.insert(at, std::string(random() % 20, "*$\r\n-09+E\0"[random() % 10]));
      }
      if (bytes.empty()) bytes = "x";
    }
    TestReplica replica(request(round % 3 == 0 ? kId : "", 5));
    for (std::string_view rest = bytes; !rest.empty();) {
      const size_t size = std::min<size_t>(rest.size(), 1 + random() % 100);
      replica.receive(rest.substr(0, size));
      rest.remove_prefix(size);
    }
    EXPECT_LE(replica.snapshot.size() + replica.stream.size(), bytes.size());
  }
}

}  // namespace
}  // namespace server
