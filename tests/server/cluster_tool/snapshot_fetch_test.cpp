// SPDX-License-Identifier: MIT
#include "server/cluster_tool/snapshot_fetch.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/loopback_listener.h"
#include "tests/support/temp_directory.h"

namespace server::cluster {
namespace {

// A simulated leader that serves one client. It replies to each request with the next element of
// `answers`.
class PlayedLeader {
 public:
  explicit PlayedLeader(std::vector<std::string> answers)
      : answers_(std::move(answers)), thread_([this] { serve(); }) {}
  ~PlayedLeader() { thread_.join(); }
  PlayedLeader(const PlayedLeader&) = delete;
  PlayedLeader& operator=(const PlayedLeader&) = delete;

  Address address() const { return {"127.0.0.1", listener_.port()}; }

 private:
  void serve() const {
    const int client = listener_.accept();
    char request[4096];
    for (const std::string& answer : answers_) {
      if (::recv(client, request, sizeof request, 0) <= 0) break;
      EXPECT_EQ(::send(client, answer.data(), answer.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(answer.size()));
    }
    ::close(client);
  }

  const LoopbackListener listener_;
  const std::vector<std::string> answers_;
  std::thread thread_;
};

class SnapshotFetchTest : public ::testing::Test {
 protected:
  core::Result<FetchedSnapshot> fetch(std::vector<std::string> answers) {
    const PlayedLeader leader(std::move(answers));
    return fetch_snapshot(leader.address(), {}, 7, path_);
  }

  const support::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/s1.rdb";
  const std::string position_ = "+FULLRESYNC " + std::string(40, 'a') + " 123\r\n";
  // An empty snapshot without a checksum.
  const std::string empty_ = std::string("REDIS0009\xff") + std::string(8, '\0');
};

TEST_F(SnapshotFetchTest, SavesTheSnapshotAndItsPosition) {
  const std::string file = "\n\n$" + std::to_string(empty_.size()) + "\r\n" + empty_;
  const auto fetched = fetch({"+OK\r\n", position_ + file});
  ASSERT_TRUE(fetched) << fetched.error().message;
  EXPECT_EQ(fetched->replication_id, std::string(40, 'a'));
  EXPECT_EQ(fetched->offset, 123);
  EXPECT_EQ(fetched->bytes, empty_.size());
  EXPECT_EQ(fetched->keys, 0U);
  EXPECT_EQ(std::filesystem::file_size(path_), empty_.size());
}

TEST_F(SnapshotFetchTest, FailureLeavesNoFile) {
  const std::string torn = "$100\r\n" + empty_;
  const std::string damaged = "$5\r\nwrong";
  EXPECT_FALSE(fetch({"-ERR no leader\r\n"}));
  EXPECT_FALSE(fetch({"+OK\r\n", "-LOADING\r\n"}));
  EXPECT_FALSE(fetch({"+OK\r\n", position_ + "no size\r\n"}));
  EXPECT_FALSE(fetch({"+OK\r\n", position_ + torn}));
  EXPECT_FALSE(fetch({"+OK\r\n", position_ + damaged}));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace server::cluster
