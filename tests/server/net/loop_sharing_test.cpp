// SPDX-License-Identifier: MIT
//
// Which threads call the watchers of which loops: real threads and sockets, no server.
#include "server/net/loop_sharing.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "server/net/io_threads.h"
#include "tests/support/socket_pair.h"

namespace server::net {
namespace {

constexpr std::chrono::seconds kPatience{20};

template <class Condition>
bool becomes_true(Condition&& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

// A client of one loop: what it sends is read there, and it can tell by which thread.
class Client final : public Readiness::Watcher {
 public:
  explicit Client(IoThread& loop) : loop_(loop) {}

  void join() {
    loop_.post([this] { EXPECT_TRUE(loop_.readiness.add(sockets_.near, *this, EPOLLIN)); });
  }
  void send() const { sockets_.make_ready(); }
  int answered() const { return answered_; }
  std::thread::id thread() const { return thread_; }
  // Sends one message and waits until it was read.
  bool is_served() const {
    const int before = answered_;
    send();
    return becomes_true([&] { return answered_ > before; });
  }

  std::function<void()> then;  // before join() or while nothing is sent

 private:
  void on_ready(uint32_t /*events*/) override {
    std::array<char, 64> buffer{};
    const ssize_t size = ::recv(sockets_.near, buffer.data(), buffer.size(), 0);
    if (size <= 0) return;
    EXPECT_TRUE(loop_.is_current());
    thread_ = std::this_thread::get_id();
    if (then) then();
    answered_ += static_cast<int>(size);
  }

  IoThread& loop_;
  SocketPair sockets_;
  std::atomic<int> answered_{0};
  std::atomic<std::thread::id> thread_;
};

class LoopSharingTest : public testing::Test {
 protected:
  static constexpr size_t kLoops = 3;

  LoopSharingTest() {
    LoopSharing& sharing = threads_.sharing();
    sharing.is_wanted = [this] { return is_wanted_.load(); };
    sharing.thread_time = [this] { return is_busy_ ? time() : time() / 10; };
    sharing.idle_time = [this]() -> std::optional<std::chrono::nanoseconds> {
      return has_room_ ? time() : time() / 10;
    };
    for (size_t i = 0; i < kLoops; ++i) {
      clients_.push_back(std::make_unique<Client>(threads_.at(i)));
    }
  }
  ~LoopSharingTest() override {
    for (const auto& client : clients_) client->then = nullptr;
    threads_.stop();
    runner_.join();
  }
  void start() {
    runner_ = std::thread([this] { threads_.run(); });
    for (const auto& client : clients_) client->join();
  }
  // A moment's load of one message per client and turn; false if one was not read.
  bool serves_all(int turns = 20) {
    for (int turn = 0; turn < turns; ++turn) {
      for (const auto& client : clients_) {
        if (!client->is_served()) return false;
      }
    }
    return true;
  }
  bool are_shared() {
    return serves_all() && clients_[0]->thread() == clients_[1]->thread() &&
           clients_[1]->thread() == clients_[2]->thread();
  }
  bool are_apart() {
    return serves_all() && clients_[0]->thread() != clients_[1]->thread() &&
           clients_[1]->thread() != clients_[2]->thread() &&
           clients_[2]->thread() != clients_[0]->thread();
  }
  // On which thread posts to the loop run.
  std::thread::id thread_of_post(size_t index) {
    std::promise<std::thread::id> ran;
    threads_.at(index).post([&ran] { ran.set_value(std::this_thread::get_id()); });
    return ran.get_future().get();
  }

  static std::chrono::nanoseconds time() { return LoopSharing::Clock::now().time_since_epoch(); }

  std::atomic<bool> is_wanted_{true};
  // Whether a thread that does anything seems to use all of its processor, and another is idle.
  std::atomic<bool> is_busy_{false};
  std::atomic<bool> has_room_{true};
  IoThreads threads_{kLoops};
  std::vector<std::unique_ptr<Client>> clients_;
  std::thread runner_;
};

TEST_F(LoopSharingTest, OneThreadServesAllThatHaveClients) {
  start();
  EXPECT_TRUE(becomes_true([this] { return are_shared(); }));
}

TEST_F(LoopSharingTest, EachServesItsOwnWhereItIsNotWanted) {
  is_wanted_ = false;
  start();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(are_apart());
  is_wanted_ = true;
  EXPECT_TRUE(becomes_true([this] { return are_shared(); }));
  is_wanted_ = false;
  EXPECT_TRUE(becomes_true([this] { return are_apart(); }));
}

TEST_F(LoopSharingTest, PostsReachALoopThatIsLent) {
  start();
  ASSERT_TRUE(becomes_true([this] { return are_shared(); }));
  for (int i = 0; i < 300; ++i) {
    for (size_t loop = 0; loop < kLoops; ++loop) thread_of_post(loop);
    ASSERT_TRUE(clients_[static_cast<size_t>(i) % kLoops]->is_served());
  }
}

TEST_F(LoopSharingTest, ALoopGoesBackWhenNoClientComes) {
  start();
  ASSERT_TRUE(becomes_true([this] { return are_shared(); }));
  EXPECT_TRUE(becomes_true([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto first = thread_of_post(0);
    const auto second = thread_of_post(1);
    const auto third = thread_of_post(2);
    return first != second && second != third && third != first;
  }));
  EXPECT_TRUE(becomes_true([this] { return are_shared(); }));
}

// The driving thread does not come back from a client before others were served: which only their
// own threads can do, once they have taken their loops back. Its own loop waits with it.
TEST_F(LoopSharingTest, ALongRoundKeepsOtherLoopsNoLonger) {
  is_wanted_ = false;
  start();
  ASSERT_TRUE(are_apart());
  std::array<std::thread::id, kLoops> own;
  for (size_t i = 0; i < kLoops; ++i) own[i] = clients_[i]->thread();
  is_wanted_ = true;
  for (size_t distance = 0; distance < kLoops; ++distance) {
    ASSERT_TRUE(becomes_true([this] { return are_shared(); }));
    const auto driver =
        static_cast<size_t>(std::find(own.begin(), own.end(), clients_[0]->thread()) - own.begin());
    const size_t busy = (driver + distance) % kLoops;
    std::atomic<bool> is_released{false};
    std::atomic<bool> was_released{false};
    clients_[busy]->then = [&] {
      was_released = becomes_true([&is_released] { return is_released.load(); });
    };
    const int answered = clients_[busy]->answered();
    clients_[busy]->send();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // nobody else is in that round
    for (size_t i = 0; i < kLoops; ++i) {
      if (i == driver || i == busy) continue;
      for (int message = 0; message < 50; ++message) ASSERT_TRUE(clients_[i]->is_served());
      EXPECT_EQ(clients_[i]->thread(), own[i]);
    }
    is_released = true;
    EXPECT_TRUE(becomes_true([&] { return clients_[busy]->answered() > answered; }));
    EXPECT_TRUE(was_released);
    clients_[busy]->then = nullptr;
  }
}

TEST_F(LoopSharingTest, ABusyDriverGivesLoopsBackWhereThereIsRoom) {
  is_busy_ = true;
  start();
  EXPECT_TRUE(becomes_true([this] { return are_apart(); }));
}

TEST_F(LoopSharingTest, ABusyDriverKeepsThemWhereNoProcessorIsIdle) {
  is_busy_ = true;
  has_room_ = false;
  start();
  ASSERT_TRUE(becomes_true([this] { return are_shared(); }));
  const auto until = LoopSharing::Clock::now() + std::chrono::milliseconds(700);
  int times_apart = 0;
  while (LoopSharing::Clock::now() < until) times_apart += are_apart() ? 1 : 0;
  EXPECT_EQ(times_apart, 0);
}

TEST_F(LoopSharingTest, ThreadsEndWhileTheirLoopsAreLent) {
  start();
  ASSERT_TRUE(becomes_true([this] { return are_shared(); }));
  for (const auto& client : clients_) client->send();
}

// Clients that come and go, posts, and the wish for sharing changing: nothing is lost.
TEST_F(LoopSharingTest, NothingIsLostWhileItComesAndGoes) {
  start();
  std::atomic<bool> is_over{false};
  std::thread changer([&] {
    while (!is_over) {
      is_wanted_ = !is_wanted_;
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
  });
  std::vector<std::thread> senders;
  senders.reserve(kLoops);
  std::atomic<int> lost{0};
  for (const auto& client : clients_) {
    senders.emplace_back([this, &lost, &client = *client] {
      for (int i = 0; i < 1000 && lost == 0; ++i) {
        if (!client.is_served()) ++lost;
        if (i % 50 == 0) thread_of_post(static_cast<size_t>(i) / 50 % kLoops);
        if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(12));
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  is_over = true;
  changer.join();
  EXPECT_EQ(lost, 0);
}

}  // namespace
}  // namespace server::net
