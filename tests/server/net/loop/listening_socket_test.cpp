// SPDX-License-Identifier: MIT
#include "server/net/loop/listening_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "server/base/log/log.h"
#include "tests/support/caller.h"
#include "tests/support/reserved_port.h"
#include "tests/support/waiting.h"

namespace server::net {
namespace {

using ::testing::HasSubstr;

constexpr int kBacklog = 8;

class ListeningSocketTest : public testing::Test {
 protected:
  ListeningSocketTest() {
    std::string pattern = ::testing::TempDir() + "bloomery_listening_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~ListeningSocketTest() override {
    for (const auto& socket : opened_) socket->close();
    for (const int descriptor : accepted_) ::close(descriptor);
    std::filesystem::remove_all(directory_);
  }

  std::shared_ptr<ListeningSocket> open() {
    auto opened = ListeningSocket::open_tcp(context_, "127.0.0.1", port_, kBacklog);
    EXPECT_TRUE(opened) << opened.error().message;
    opened_.push_back(*opened);
    return *opened;
  }
  std::string error_of_open(const std::string& address) {
    const auto opened = ListeningSocket::open_tcp(context_, address, port_, kBacklog);
    return opened ? "" : opened.error().message;
  }
  std::string error_of_unix(const std::string& path, unsigned permissions = 0,
                            const std::string& group = "") {
    auto opened = ListeningSocket::open_unix(context_, path, {permissions, group}, kBacklog);
    if (!opened) return opened.error().message;
    opened_.push_back(std::move(*opened));
    return "";
  }
  void start(const std::shared_ptr<ListeningSocket>& socket) {
    socket->start({.accept = [this](int descriptor) { accepted_.push_back(descriptor); },
                   .has_room =
                       [this] {
                         ++questions_;
                         return has_room_;
                       },
                   .accepts_per_round_max = [] { return 2; }});
  }
  // Serves until `count` peers are accepted, or until the deadline has passed.
  void await_accepted(size_t count) {
    context_.restart();
    const auto end = std::chrono::steady_clock::now() + support::deadline();
    while (accepted_.size() < count && std::chrono::steady_clock::now() < end) {
      context_.run_one_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(accepted_.size(), count);
  }
  void serve(std::chrono::milliseconds time) {
    context_.restart();
    context_.run_for(time);
  }

  std::string directory_;
  const ReservedPort reserved_;
  const uint16_t port_ = reserved_.port();
  asio::io_context context_{1};
  std::vector<std::shared_ptr<ListeningSocket>> opened_;
  std::vector<int> accepted_;
  bool has_room_ = true;
  int questions_ = 0;
};

TEST_F(ListeningSocketTest, AcceptsAllThatConnect) {
  start(open());
  const std::vector<Caller> callers(5);
  for (const Caller& caller : callers) ASSERT_TRUE(caller.call("127.0.0.1", port_));
  await_accepted(5);
  for (const int descriptor : accepted_) {
    EXPECT_NE(::fcntl(descriptor, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST_F(ListeningSocketTest, BeforeTheStartPeersWait) {
  const auto socket = open();
  const Caller caller;
  ASSERT_TRUE(caller.call("127.0.0.1", port_));
  serve(std::chrono::milliseconds(20));
  EXPECT_TRUE(accepted_.empty());
  start(socket);
  await_accepted(1);
}

TEST_F(ListeningSocketTest, WithoutRoomPeersWaitAndNothingSpins) {
  has_room_ = false;
  start(open());
  const Caller caller;
  ASSERT_TRUE(caller.call("127.0.0.1", port_));
  serve(std::chrono::milliseconds(50));
  EXPECT_TRUE(accepted_.empty());
  EXPECT_LE(questions_, 2);
  has_room_ = true;
  await_accepted(1);
}

TEST_F(ListeningSocketTest, WithoutDescriptorsPeersWait) {
  start(open());
  const Caller early;
  ASSERT_TRUE(early.call("127.0.0.1", port_));
  // UBSan opens a descriptor when it first checks a type with virtual functions. So the types that
  // accepting, waiting and logging use are used once before the limit is set.
  log_warning("A test accepts without descriptors: {}", port_);
  has_room_ = false;
  serve(std::chrono::milliseconds(50));
  has_room_ = true;
  await_accepted(1);
  questions_ = 0;
  const Caller caller;
  ASSERT_TRUE(caller.call("127.0.0.1", port_));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  serve(std::chrono::milliseconds(50));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(accepted_.size(), 1U);
  EXPECT_LE(questions_, 2) << "accepting spins";
  await_accepted(2);
}

TEST_F(ListeningSocketTest, ASuspendedOneLeavesItsAddressToOthers) {
  const auto socket = open();
  start(socket);
  EXPECT_THAT(error_of_open("*"), HasSubstr("Could not create server TCP listening socket *:"));
  socket->suspend();
  EXPECT_EQ(error_of_open("*"), "");
  const Caller refused;
  EXPECT_FALSE(refused.call("127.0.0.1", port_));
  ASSERT_TRUE(socket->resume(kBacklog));
  const Caller caller;
  ASSERT_TRUE(caller.call("127.0.0.1", port_));
  await_accepted(1);
}

TEST_F(ListeningSocketTest, AnAddressThatIsTakenCannotBeResumed) {
  const auto socket = open();
  start(socket);
  socket->suspend();
  const auto other = ListeningSocket::open_tcp(context_, "127.0.0.1", port_, kBacklog);
  ASSERT_TRUE(other);
  EXPECT_FALSE(socket->resume(kBacklog));
  (*other)->close();
  EXPECT_TRUE(socket->resume(kBacklog));
}

TEST_F(ListeningSocketTest, ClosedSocketAcceptsNoClient) {
  const auto socket = open();
  start(socket);
  const Caller caller;
  ASSERT_TRUE(caller.call("127.0.0.1", port_));
  socket->close();
  serve(std::chrono::milliseconds(50));
  EXPECT_TRUE(accepted_.empty());
  EXPECT_EQ(error_of_open("127.0.0.1"), "");
}

TEST_F(ListeningSocketTest, UnavailableAddressIsNamedInError) {
  EXPECT_THAT(error_of_open("fe80::1%unknown"),
              HasSubstr("Could not resolve bind address 'fe80::1%unknown'"));
  EXPECT_THAT(error_of_open("192.0.2.1"), HasSubstr("192.0.2.1:" + std::to_string(port_)));
}

TEST_F(ListeningSocketTest, AUnixSocketHasItsPermissions) {
  const std::string path = directory_ + "/socket";
  ASSERT_EQ(error_of_unix(path, 0600), "");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  start(opened_.back());
  const Caller caller(AF_UNIX);
  ASSERT_TRUE(caller.call_path(path));
  await_accepted(1);
}

TEST_F(ListeningSocketTest, UnixSocketBelongsToItsGroup) {
  const std::string path = directory_ + "/socket";
  // The test uses a group of this process, because the kernel allows no other without root rights.
  const std::string group = std::to_string(::getegid());
  ASSERT_EQ(error_of_unix(path, 0660, group), "");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_gid, ::getegid());
  EXPECT_EQ(status.st_mode & 0777, 0660U);
  opened_.back()->close();
  EXPECT_THAT(error_of_unix(path, 0660, "no-such-group"),
              HasSubstr("unixsocketgroup 'no-such-group': there is no such group"));
  EXPECT_FALSE(std::filesystem::exists(path)) << "a socket that others could reach";
}

// A number that does not fit a group's id must not name another group.
TEST_F(ListeningSocketTest, RejectsGroupNumbersThatAreTooLarge) {
  const std::string path = directory_ + "/socket";
  const std::string same_in_32_bits = std::to_string((int64_t{1} << 32) + ::getegid());
  for (const std::string& group : {same_in_32_bits, std::string("4294967295")}) {
    EXPECT_THAT(error_of_unix(path, 0660, group),
                HasSubstr("unixsocketgroup '" + group + "': the number is too large"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ListeningSocketTest, OnlyASocketIsReplaced) {
  const std::string path = directory_ + "/socket";
  ASSERT_EQ(error_of_unix(path), "");
  opened_.back()->close();
  ASSERT_TRUE(std::filesystem::is_socket(path));
  EXPECT_EQ(error_of_unix(path), "") << "left behind by an earlier run";
  const std::string file = directory_ + "/file";
  std::ofstream(file) << "kept";
  EXPECT_THAT(error_of_unix(file), HasSubstr("Failed opening Unix socket " + file));
  EXPECT_TRUE(std::filesystem::is_regular_file(file));
  EXPECT_THAT(error_of_unix(directory_ + "/" + std::string(200, 'x')), HasSubstr("is too long"));
}

TEST_F(ListeningSocketTest, PathInUseIsNotReplaced) {
  const std::string path = directory_ + "/socket";
  ASSERT_EQ(error_of_unix(path), "");
  const std::string taken = "Failed opening Unix socket " + path + ": another server listens on it";
  EXPECT_EQ(error_of_unix(path), taken);
  const Caller caller(AF_UNIX);
  EXPECT_TRUE(caller.call_path(path));
  // The failed attempt to listen has connected to the socket, to find out whether a server uses it.
  // So two peers wait to be accepted.
  start(opened_.back());
  await_accepted(2);
}

TEST_F(ListeningSocketTest, AFullQueueIsNoReasonToTakeThePath) {
  const std::string path = directory_ + "/socket";
  ASSERT_EQ(error_of_unix(path), "");
  std::vector<std::unique_ptr<Caller>> callers;
  do {
    callers.push_back(std::make_unique<Caller>(AF_UNIX));
    ::fcntl(callers.back()->descriptor(), F_SETFL, O_NONBLOCK);
  } while (callers.size() < 100 && callers.back()->call_path(path));
  ASSERT_EQ(errno, EAGAIN);
  EXPECT_THAT(error_of_unix(path), HasSubstr("another server"));
}

}  // namespace
}  // namespace server::net
