// SPDX-License-Identifier: MIT
#include "server/cluster_node/peers.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/config/config.h"
#include "tests/server/cluster/scripted_etcd.h"
#include "tests/support/loopback_listener.h"

namespace server::cluster {
namespace {

// Simulates another node. It accepts one connection after the other, and answers each request with
// the next element of `replies`.
class FakeNode {
 public:
  explicit FakeNode(std::deque<std::string> replies) : replies_(std::move(replies)) {
    node_ = {std::string(40, 'a'), "127.0.0.1", listener_.port(), 0, ""};
    thread_ = std::thread([this] { run(); });
  }
  ~FakeNode() {
    {
      const std::scoped_lock lock(mutex_);
      is_ending_ = true;
      ::shutdown(listener_.descriptor(), SHUT_RDWR);
      // Shuts down the accepted connection, so that serve() stops reading from it.
      if (peer_ >= 0) ::shutdown(peer_, SHUT_RDWR);
    }
    thread_.join();
  }
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;

  const Node& node() const { return node_; }
  int connections() const { return connections_; }
  std::string received() const {
    const std::scoped_lock lock(mutex_);
    return received_;
  }

 private:
  void run() {
    for (int peer = 0; (peer = listener_.accept()) >= 0;) {
      ++connections_;
      if (set_peer(peer)) serve(peer);
      set_peer(-1);
      ::close(peer);
    }
  }
  // Stores the socket of the connection that serve() reads. Returns false if the destructor has
  // begun.
  bool set_peer(int peer) {
    const std::scoped_lock lock(mutex_);
    peer_ = peer;
    return !is_ending_;
  }
  // Answers the requests on a connection. If the next reply is empty, closes the connection. If the
  // next reply is "silence", does not answer the request.
  void serve(int peer) {
    std::array<char, 4096> buffer;
    ssize_t count = 0;
    while ((count = ::read(peer, buffer.data(), buffer.size())) > 0) {
      {
        const std::scoped_lock lock(mutex_);
        received_.append(buffer.data(), static_cast<size_t>(count));
      }
      const std::string reply = replies_.empty() ? "" : replies_.front();
      if (!replies_.empty()) replies_.pop_front();
      if (reply.empty()) return;
      if (reply != "silence") {
        (void)::send(peer, reply.data(), reply.size(), MSG_NOSIGNAL);
      }
    }
  }

  LoopbackListener listener_;
  int peer_ = -1;  // mutex_ guards peer_ and is_ending_
  bool is_ending_ = false;
  Node node_;
  std::atomic<int> connections_{0};
  mutable std::mutex mutex_;
  std::string received_;
  std::deque<std::string> replies_;
  std::thread thread_;
};

class PeersTest : public testing::Test {
 protected:
  std::optional<std::string> ask(const Node& node, std::vector<std::string> words,
                                 int64_t delay_ms = 0) {
    std::optional<std::optional<std::string>> answer;
    peers_->call(
        node, std::move(words), [&](const std::optional<std::string>& line) { answer = line; },
        delay_ms);
    io_.restart();
    const auto work = boost::asio::make_work_guard(io_);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!answer && std::chrono::steady_clock::now() < end) {
      io_.run_one_for(std::chrono::milliseconds(100));
    }
    EXPECT_TRUE(answer) << "the handler did not run";
    return answer.value_or(std::nullopt);
  }

  Config config_;
  boost::asio::io_context io_;
  // The timeout of 10 s is not exceeded even on a busy machine. Only the test of the timeout itself
  // uses the default timeout.
  std::optional<Peers> peers_{std::in_place, io_, config_, nullptr, 10'000};
};

TEST_F(PeersTest, KeepsTheLinkBetweenCalls) {
  const FakeNode node({"+OK\r\n", "+7 1000\r\n"});
  EXPECT_EQ(ask(node.node(), {"CLUSTERX", "PROMISE", "s1", "7"}), "+OK");
  EXPECT_EQ(ask(node.node(), {"CLUSTERX", "OFFSET", "s1"}), "+7 1000");
  EXPECT_EQ(node.connections(), 1);
  EXPECT_TRUE(node.received().starts_with("*4\r\n$8\r\nCLUSTERX\r\n$7\r\nPROMISE\r\n"));
}

TEST_F(PeersTest, ReconnectsWhenTheKeptLinkHasEnded) {
  const FakeNode node({"+OK\r\n", "", "-NO reason\r\n"});
  EXPECT_EQ(ask(node.node(), {"A"}), "+OK");
  EXPECT_EQ(ask(node.node(), {"B"}), "-NO reason");
  EXPECT_EQ(node.connections(), 2);
}

TEST_F(PeersTest, CallsOverALinkThatEndsAreAnswered) {
  const FakeNode silent({""});
  int answers = 0;
  for (int i = 0; i < 3; ++i) {
    peers_->call(silent.node(), {"A"}, [&](const auto& line) { answers += line ? 100 : 1; });
  }
  peers_->keep_only({});
  EXPECT_TRUE(run_until(io_, [&] { return answers == 3; })) << answers;
}

TEST_F(PeersTest, ANodeThatIsSilentIsNoAnswerInTime) {
  const FakeNode node({"silence"});
  peers_.emplace(io_, config_, nullptr);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ask(node.node(), {"A"}), std::nullopt);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));
}

TEST_F(PeersTest, DelayIsAddedToTheTimeLimit) {
  const FakeNode node({"+OK\r\n"});
  peers_.emplace(io_, config_, nullptr, 0);
  EXPECT_EQ(ask(node.node(), {"A"}), std::nullopt);
  EXPECT_EQ(ask(node.node(), {"A"}, 10'000), "+OK");
}

TEST_F(PeersTest, ReportsAClosedPort) {
  Node node;
  {
    const FakeNode gone({});
    node = gone.node();
  }
  EXPECT_EQ(ask(node, {"A"}), std::nullopt);
}

TEST_F(PeersTest, AuthenticatesAsAReplicaDoes) {
  const NamedValue pairs[] = {{"masteruser", "node"}, {"masterauth", "secret"}};
  ASSERT_TRUE(config_.set(pairs));
  const FakeNode node({"+OK\r\n", "+OK\r\n", "-WRONGPASS\r\n"});
  EXPECT_EQ(ask(node.node(), {"A"}), "+OK");
  EXPECT_TRUE(node.received().starts_with("*3\r\n$4\r\nAUTH\r\n$4\r\nnode\r\n$6\r\nsecret\r\n"));
  const FakeNode refusing({"-WRONGPASS\r\n"});
  EXPECT_EQ(ask(refusing.node(), {"A"}), std::nullopt);
}

TEST_F(PeersTest, ALineWithoutEndIsBounded) {
  const FakeNode node({std::string(100'000, 'x')});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ask(node.node(), {"A"}), std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5))
      << "it was the limit that ended the call";
}

TEST_F(PeersTest, LinksToNodesThatAreNotNamedEnd) {
  const FakeNode node({"+OK\r\n", "+OK\r\n"});
  EXPECT_EQ(ask(node.node(), {"A"}), "+OK");
  Topology topology;
  topology.nodes = {node.node()};
  peers_->keep_only(topology);
  topology.nodes.clear();
  peers_->keep_only(topology);
  EXPECT_EQ(ask(node.node(), {"A"}), "+OK");
  EXPECT_EQ(node.connections(), 2);
}

}  // namespace
}  // namespace server::cluster
