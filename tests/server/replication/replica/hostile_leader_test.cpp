// SPDX-License-Identifier: MIT
//
// Tests a replica whose leader sends wrong data or stops in the middle of its data. The replica
// must keep its own data until it has received a complete snapshot.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "server/replication/replica_controller.h"
#include "tests/support/replica_fixture.h"

namespace server {
namespace {

class HostileLeaderTest : public ReplicaFixture {
 protected:
  // The simulated leader answers PSYNC with `bytes` and disconnects. Returns when the replica has
  // connected again.
  void lie(std::string_view bytes) {
    played_.await_psync();
    (void)played_.try_to_say(bytes);
    played_.hang_up();
    retry_now();
  }
  static std::string full_resync_line(uint64_t offset = 0) {
    return fmt::format("+FULLRESYNC {} {}\r\n", PlayedLeader::kId, offset);
  }
};

TEST_F(HostileLeaderTest, ASnapshotThatNeverEndsIsGivenUpAndTheDataStay) {
  run({"CONFIG", "SET", "repl-timeout", "2"});
  run({"SET", "old", "1"});
  ask_to_follow(played_);
  played_.await_psync();
  played_.say(full_resync_line() + "$EOF:" + played_.kMark + "\r\n");
  const std::string beginnings = [] {
    std::string bytes;
    for (int i = 0; i < 1000; ++i) bytes += PlayedLeader::kMark.substr(0, 39);
    return bytes;
  }();
  played_.say(beginnings);
  await([this] { return replica_controller_.figures().sync_received > 0; });
  EXPECT_EQ(info("replication", "master_sync_in_progress"), "1");
  advance_ms(2100);
  EXPECT_TRUE(played_.await_end());
  EXPECT_EQ(run({"GET", "old"}), bulk("1"));
  retry_now();
  played_.await_psync();
  EXPECT_FALSE(has_temporary_files());
  played_.full_resync(kEmptySnapshot);
  await_link();
  EXPECT_EQ(run({"DBSIZE"}), integer(0));
}

TEST_F(HostileLeaderTest, AnswersThatNoLeaderGivesEndTheLink) {
  run({"BF.ADD", "old", "item"});
  ask_to_follow(played_);
  const std::vector<std::string> lies = {
      "-ERR no\r\n$5\r\nhello",
      "+CONTINUE\r\n",
      "+CONTINUE x\r\n",
      "+OK\r\n",
      "+FULLRESYNC\r\n",
      "+FULLRESYNC a 1\r\n",
      "+FULLRESYNC " + played_.kId + " 99999999999999999999\r\n",
      std::string(100'000, '\0'),
      std::string(1000, '\n') + std::string(10'000, 'x'),
  };
  for (const std::string& bytes : lies) {
    lie(bytes);
    EXPECT_EQ(run({"BF.EXISTS", "old", "item"}), integer(1)) << bytes.substr(0, 40);
  }
  played_.await_psync();
  EXPECT_EQ(replica_controller_.figures().full_syncs, 0U);
  EXPECT_FALSE(has_temporary_files());
}

TEST_F(HostileLeaderTest, SnapshotsThatAreNoneLoseNothing) {
  const std::string sound = one_key_snapshot();
  const std::string cut = sound.substr(0, sound.size() / 2);
  std::string flipped = sound;
  flipped[sound.size() / 3] ^= 16;
  const std::string full = full_resync_line();
  const std::string sized = full + "$";
  const std::string marked = full + "$EOF:" + played_.kMark + "\r\n";
  run({"BF.ADD", "old", "item"});
  ask_to_follow(played_);
  const std::vector<std::string> lies = {
      full + "$-1\r\n",
      full + "$99999999999999999999\r\n",
      full + "$x\r\n",
      full + "-ERR the save failed\r\n",
      full + "$EOF:short\r\n",
      full + "$0\r\n",
      full + "$5\r\nREDIS",
      sized + std::to_string(cut.size()) + "\r\n" + cut,
      sized + std::to_string(flipped.size()) + "\r\n" + flipped,
      sized + std::to_string(sound.size() + 1) + "\r\n" + sound + "x",
      marked + cut + played_.kMark,
      marked + played_.kMark,
      full + "$9000000000000000000\r\n" + sound,
  };
  for (const std::string& bytes : lies) {
    lie(bytes);
    EXPECT_EQ(run({"BF.EXISTS", "old", "item"}), integer(1)) << bytes.substr(0, 100);
  }
  played_.await_psync();
  EXPECT_FALSE(has_temporary_files());
  played_.full_resync(kEmptySnapshot);
  await_link();
  EXPECT_EQ(run({"DBSIZE"}), integer(0));
}

TEST_F(HostileLeaderTest, ACutInsideTheSnapshotLosesNothing) {
  const std::string sound = one_key_snapshot();
  const std::string size = std::to_string(sound.size());
  run({"SET", "old", "stays"});
  ask_to_follow(played_);
  for (const std::string& begin : {"$" + size + "\r\n", "$EOF:" + played_.kMark + "\r\n"}) {
    const std::string bytes = full_resync_line() + begin + sound;
    for (const size_t cut : {size_t{0}, size_t{1}, bytes.size() / 4, bytes.size() / 2,
                             bytes.size() - 10, bytes.size() - 1}) {
      lie(bytes.substr(0, cut));
      EXPECT_EQ(run({"GET", "old"}), bulk("stays")) << cut;
      EXPECT_EQ(run({"DBSIZE"}), integer(1)) << cut;
    }
  }
  played_.await_psync();
  EXPECT_FALSE(has_temporary_files());
}

// After random damage in a stream, the replica must not crash, and the next full sync must give it
// the leader's data.
TEST_F(HostileLeaderTest, FullSyncRepairsADamagedStream) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  const auto below = [&](size_t end) { return random() % end; };
  std::string stream =
      commands({{"SELECT", "0"}, {"MULTI"}, {"SET", "a", std::string(50, 'x')}, {"EXEC"}});
  for (int i = 0; i < 20; ++i) stream += command({"BF.ADD", "f", "item" + std::to_string(i)});
  for (int i = 0; i < 20; ++i) stream += command({"SETBIT", "b", std::to_string(i * 7), "1"});
  const std::vector<std::string> insertions = {"*3\r\n", "$99999999\r\n", "\r\n", "EXEC"};
  run({"CONFIG", "SET", "rdb-foreign-types", "skip"});
  ask_to_follow(played_);
  for (int round = 0; round < 60; ++round) {
    std::string damaged = stream;
    for (size_t left = 1 + below(4); left > 0; --left) {
      const size_t at = below(damaged.size());
      switch (below(3)) {
        case 0:
          damaged[at] = static_cast<char>(below(256));
          break;
        case 1:
          damaged.erase(at, below(30));
          break;
        default:
          damaged.insert(at, insertions[below(insertions.size())]);
      }
    }
    played_.await_psync();
    played_.full_resync(kEmptySnapshot, 0, below(2) == 0 ? "" : played_.kMark);
    await_link();
    played_.say(damaged);
    played_.hang_up();
    retry_now();
  }
  played_.await_psync();
  played_.full_resync(kEmptySnapshot);
  played_.say(stream);
  await_applied(stream.size());
  EXPECT_EQ(run({"GET", "a"}), bulk(std::string(50, 'x')));
  EXPECT_EQ(run({"DBSIZE"}), integer(3));
  EXPECT_EQ(run({"BF.CARD", "f"}), integer(20));
}

}  // namespace
}  // namespace server
