// SPDX-License-Identifier: MIT
#include "server/cluster_node/peers.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <chrono>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/base/config/config.h"
#include "tests/server/cluster/scripted_etcd.h"
#include "tests/server/cluster_node/fake_node.h"
#include "tests/support/captured_log.h"

namespace {

constexpr const char* kSlowHost = "slow.test";
std::binary_semaphore lookup_has_begun(0);
std::binary_semaphore lookup_may_end(0);

}  // namespace

// Replaces the function of the C library in this program. The lookup of kSlowHost fails, but only
// after the test has permitted that.
int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** result) {
  if (name != nullptr && std::string_view(name) == kSlowHost) {
    lookup_has_begun.release();
    lookup_may_end.acquire();
    return EAI_NONAME;
  }
  static const auto look_up =
      reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return look_up(name, service, hints, result);
}

namespace server::cluster {
namespace {

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

// A name may stop resolving when its node is removed.
TEST_F(PeersTest, EndingALinkDoesNotWaitForDns) {
  Node node;
  node.ip = kSlowHost;
  node.port = 7000;
  bool is_answered = false;
  peers_->call(node, {"A"}, [&](const auto& line) { is_answered = !line; });
  lookup_has_begun.acquire();
  peers_->keep_only({});
  lookup_may_end.release();
  EXPECT_TRUE(run_until(io_, [&] { return is_answered; }));
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

// Each refusing connection is replaced, so that a corrected password or right has an effect.
TEST_F(PeersTest, LinkThatIsRefusedIsNotKept) {
  const FakeNode node(
      {"+OK\r\n", "-NOAUTH required\r\n", "-NOPERM this user has no permissions\r\n", "+OK\r\n"});
  EXPECT_EQ(ask(node.node(), {"A"}), "+OK");
  EXPECT_EQ(ask(node.node(), {"B"}), "-NOPERM this user has no permissions") << "asked again";
  EXPECT_EQ(node.connections(), 2);
  EXPECT_EQ(ask(node.node(), {"C"}), "+OK");
  EXPECT_EQ(node.connections(), 3);
}

TEST_F(PeersTest, LogsEachRefusalOnce) {
  const CapturedLog log;
  const std::string denied = "-NOPERM this user has no permissions\r\n";
  const FakeNode node({denied, denied, "-NO reason\r\n", "+OK\r\n", "-NOAUTH required\r\n",
                       "-NOAUTH required\r\n"});
  for (int i = 0; i < 2; ++i) ask(node.node(), {"A"});
  EXPECT_EQ(log.count("refuses this node's commands (NOPERM this user"), 1U);
  for (int i = 0; i < 2; ++i) ask(node.node(), {"A"});
  EXPECT_EQ(log.count("refuses"), 1U) << "an answer of an election is no refusal";
  ask(node.node(), {"A"});
  EXPECT_EQ(log.count("refuses"), 2U);
  const NamedValue pairs[] = {{"masterauth", "wrong"}};
  ASSERT_TRUE(config_.set(pairs));
  const std::string wrong = "-WRONGPASS invalid\r\n";
  const FakeNode strict({wrong, wrong});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ask(strict.node(), {"A"}), std::nullopt);
  EXPECT_EQ(log.count("commands (WRONGPASS invalid): correct masteruser"), 1U);
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
