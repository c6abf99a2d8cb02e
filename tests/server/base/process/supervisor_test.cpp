// SPDX-License-Identifier: MIT
#include "server/base/process/supervisor.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace server {
namespace {

constexpr int64_t kSecondUs = 1'000'000;

class SupervisorTest : public ::testing::Test {
 protected:
  Supervisor make(bool listens, uint64_t watchdog_us) {
    return {listens, watchdog_us, [this](const std::string& lines) { sent_.push_back(lines); }};
  }
  std::vector<std::string> sent_;
};

TEST_F(SupervisorTest, NothingIsSentWithoutManager) {
  Supervisor supervisor = make(false, kSecondUs);
  supervisor.tick(100 * kSecondUs, 0.5);
  supervisor.ready("x");
  supervisor.stopping();
  EXPECT_TRUE(sent_.empty());
}

TEST_F(SupervisorTest, ReadyAndStoppingAreSentOnce) {
  Supervisor supervisor = make(true, 0);
  supervisor.ready("Ready to accept connections");
  supervisor.ready("again");
  supervisor.stopping();
  supervisor.stopping();
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[0], "READY=1\nSTATUS=Ready to accept connections");
  EXPECT_TRUE(sent_[1].starts_with("STOPPING=1\n"));
}

TEST_F(SupervisorTest, EndingServerDoesNotReportReady) {
  Supervisor supervisor = make(true, 0);
  supervisor.stopping();
  supervisor.ready("x");
  EXPECT_EQ(sent_.size(), 1U);
}

TEST_F(SupervisorTest, LoadingMovesTheTimeLimitEachSecond) {
  Supervisor supervisor = make(true, 0);
  for (int64_t tenth = 10; tenth < 40; ++tenth) supervisor.tick(tenth * kSecondUs / 10, 0.421);
  ASSERT_EQ(sent_.size(), 3U);
  EXPECT_EQ(sent_[0], "STATUS=Loading data: 42 %\nEXTEND_TIMEOUT_USEC=30000000");
  supervisor.ready("x");
  supervisor.tick(100 * kSecondUs, 0.9);
  EXPECT_EQ(sent_.size(), 4U);
}

TEST_F(SupervisorTest, TheWatchdogHearsTwiceInItsInterval) {
  Supervisor supervisor = make(true, 4 * kSecondUs);
  for (int64_t tenth = 100; tenth < 200; ++tenth) supervisor.tick(tenth * kSecondUs / 10, -1);
  EXPECT_EQ(sent_, std::vector<std::string>(5, "WATCHDOG=1"));
}

// Simulates a service manager, whose socket the server finds in the environment.
class ServiceManager {
 public:
  ServiceManager() : descriptor_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    std::string pattern = ::testing::TempDir() + "bloomery_notify_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory_ + "/notify";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
    ::setenv("WATCHDOG_USEC", "1000000", 1);
  }
  ~ServiceManager() {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
    ::close(descriptor_);
    std::filesystem::remove_all(directory_);
  }
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // Returns the next message; empty if there is none.
  std::string hear() const {
    std::array<char, 4096> room{};
    const ssize_t size = ::recv(descriptor_, room.data(), room.size(), 0);
    return size <= 0 ? "" : std::string(room.data(), static_cast<size_t>(size));
  }

 private:
  int descriptor_;
  std::string directory_;
};

TEST(SupervisorEnvironment, MessagesReachTheManagersSocket) {
  const ServiceManager manager;
  for (const Supervised mode : {Supervised::kSystemd, Supervised::kAuto}) {
    Supervisor supervisor(mode);
    supervisor.ready("Ready to accept connections");
    EXPECT_EQ(manager.hear(), "READY=1\nSTATUS=Ready to accept connections");
    supervisor.stopping();
    EXPECT_TRUE(manager.hear().starts_with("STOPPING=1\n"));
  }
}

TEST(SupervisorEnvironment, UnsupervisedServerSendsNothing) {
  const ServiceManager manager;
  Supervisor supervisor(Supervised::kNo);
  supervisor.ready("Ready to accept connections");
  supervisor.tick(100 * kSecondUs, -1);
  supervisor.stopping();
  EXPECT_EQ(manager.hear(), "");
}

TEST(SupervisorEnvironment, WithoutSocketNothingIsSent) {
  const ServiceManager manager;
  const std::string path = std::getenv("NOTIFY_SOCKET");
  ::unsetenv("NOTIFY_SOCKET");
  Supervisor supervisor(Supervised::kAuto);
  // If the supervisor sent a message nevertheless, the manager would now receive it.
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  supervisor.ready("Ready to accept connections");
  supervisor.tick(100 * kSecondUs, -1);
  supervisor.stopping();
  EXPECT_EQ(manager.hear(), "");
}

TEST(SupervisorEnvironment, TheWatchdogsIntervalIsTheManagers) {
  const ServiceManager manager;
  Supervisor supervisor(Supervised::kSystemd);
  supervisor.tick(10 * kSecondUs, -1);
  EXPECT_EQ(manager.hear(), "WATCHDOG=1");
  supervisor.tick(10 * kSecondUs + kSecondUs / 10, -1);
  EXPECT_EQ(manager.hear(), "");
  supervisor.tick(10 * kSecondUs + kSecondUs / 2, -1);
  EXPECT_EQ(manager.hear(), "WATCHDOG=1");
}

}  // namespace
}  // namespace server
