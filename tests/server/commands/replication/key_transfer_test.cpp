// SPDX-License-Identifier: MIT
#include "server/commands/replication/key_transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/loopback_listener.h"
#include "tests/support/wait_limit.h"
#include "tests/support/waiting.h"

namespace server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// A simulated target of a transfer. It accepts one connection, sends its replies at once, and
// stores the bytes that it receives.
class Target {
 public:
  explicit Target(std::string replies) : thread_([this, replies] { run(replies); }) {}
  ~Target() { join(); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  uint16_t port() const { return listener_.port(); }
  // Waits until the transfer has closed the connection. Returns all bytes that the target has
  // received.
  const std::string& received() {
    join();
    return received_;
  }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  void run(const std::string& replies) {
    support::limit_waits(listener_.descriptor());
    const int peer = ::accept(listener_.descriptor(), nullptr, nullptr);
    ASSERT_GE(peer, 0);
    support::limit_waits(peer);
    EXPECT_EQ(::send(peer, replies.data(), replies.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(replies.size()));
    char room[4096];
    for (ssize_t size = 0; (size = ::recv(peer, room, sizeof room, 0)) > 0;) {
      received_.append(room, static_cast<size_t>(size));
    }
    ::close(peer);
  }

  LoopbackListener listener_;
  std::string received_;
  std::thread thread_;
};

KeyTransfer::Outcome transfer(const TransferTarget& target, std::vector<DumpedKey> keys) {
  std::atomic<bool> is_woken{false};
  KeyTransfer transfer(target, std::move(keys), [&] { is_woken = true; });
  EXPECT_TRUE(support::wait_until([&] { return is_woken.load(); }));
  EXPECT_TRUE(transfer.has_ended());
  return transfer.outcome();
}

TransferTarget at(uint16_t port) {
  return {.host = "127.0.0.1", .port = port, .timeout = support::deadline()};
}

TEST(KeyTransferTest, KeysAreRestoredBehindLoginAndSelect) {
  Target peer("+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
  TransferTarget target = at(peer.port());
  target.database = 3;
  target.login = {"AUTH", "user", "pass"};
  const auto outcome =
      transfer(target, {{.name = "a", .payload = "x\r\ny"},
                        {.name = "b", .ttl_ms = 7, .payload = "", .replaces = true}});
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.stored, ElementsAre(true, true));
  EXPECT_EQ(peer.received(),
            "*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$4\r\npass\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
            "*4\r\n$7\r\nRESTORE\r\n$1\r\na\r\n$1\r\n0\r\n$4\r\nx\r\ny\r\n"
            "*5\r\n$7\r\nRESTORE\r\n$1\r\nb\r\n$1\r\n7\r\n$0\r\n\r\n$7\r\nREPLACE\r\n");
}

TEST(KeyTransferTest, FirstErrorIsReportedAndOtherKeysAreStored) {
  Target peer("+OK\r\n-BUSYKEY b\r\n+OK\r\n-ERR c\r\n");
  const auto outcome = transfer(at(peer.port()), {{.name = "a"}, {.name = "b"}, {.name = "c"}});
  EXPECT_EQ(outcome.error, "ERR Target instance replied with error: BUSYKEY b");
  EXPECT_THAT(outcome.stored, ElementsAre(false, true, false));
}

TEST(KeyTransferTest, RefusedLoginSendsNoKey) {
  Target peer("-WRONGPASS no\r\n");
  TransferTarget target = at(peer.port());
  target.login = {"AUTH", "pass"};
  const auto outcome = transfer(target, {{.name = "a"}});
  EXPECT_EQ(outcome.error, "ERR Target instance replied with error: WRONGPASS no");
  EXPECT_THAT(outcome.stored, ElementsAre(false));
  EXPECT_THAT(peer.received(), Not(HasSubstr("RESTORE")));
}

TEST(KeyTransferTest, SilentTargetIsGivenUp) {
  Target peer("+OK\r\n");
  TransferTarget target = at(peer.port());
  target.timeout = std::chrono::milliseconds(1);
  EXPECT_THAT(transfer(target, {{.name = "a"}}).error,
              StartsWith("IOERR error or timeout reading from the target instance 127.0.0.1:"));
}

TEST(KeyTransferTest, TargetThatSpeaksAnotherProtocolIsAnError) {
  Target peer("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_THAT(transfer(at(peer.port()), {{.name = "a"}}).error, StartsWith("IOERR "));
}

TEST(KeyTransferTest, UnknownHostIsAnError) {
  TransferTarget target = at(1);
  target.host = "no host\n";
  EXPECT_THAT(transfer(target, {{.name = "a"}}).error,
              StartsWith("IOERR error or timeout connecting to the target instance no host"));
}

TEST(KeyTransferTest, AbandonedTransferDoesNotWake) {
  Target peer("");
  std::atomic<bool> is_woken{false};
  {
    const KeyTransfer transfer(at(peer.port()), {{.name = "a"}}, [&] { is_woken = true; });
  }
  EXPECT_THAT(peer.received(), Not(HasSubstr("RESTORE"))) << "the connection is closed";
  EXPECT_FALSE(is_woken);
}

}  // namespace
}  // namespace server
