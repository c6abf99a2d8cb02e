// SPDX-License-Identifier: MIT
#include "server/net/io_threads.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <set>
#include <thread>

#include "tests/support/fake_reply_log.h"
#include "tests/support/waiting.h"

namespace server::net {
namespace {

class IoThreadsTest : public testing::Test {
 protected:
  static constexpr size_t kCount = 3;
  ~IoThreadsTest() override {
    threads_.stop();
    runner_.join();
  }
  // Runs `function` on the I/O thread with this index. Returns the result of `function`.
  template <class Function>
  auto run_on(size_t index, Function function) {
    std::promise<decltype(function())> result;
    threads_.at(index).loop.post([&] { result.set_value(function()); });
    return result.get_future().get();
  }
  size_t place() {
    return run_on(0, [&] { return threads_.next().index; });
  }
  void let_replies_wait_for_the_disk() {
    (void)run_on(0, [&] { return log_.is_synced = true; });
    support::let_time_pass(std::chrono::milliseconds(150),
                           "the measured load of a thread must no longer include its start");
  }

  FakeReplyLog log_;
  IoThreads threads_{kCount, log_};
  std::thread runner_{[this] { threads_.run(); }};
};

TEST_F(IoThreadsTest, EachRunsWhatIsPostedToIt) {
  std::set<std::thread::id> ids;
  for (int round = 0; round < 500; ++round) {
    for (size_t i = 0; i < kCount; ++i) {
      ids.insert(run_on(i, [] { return std::this_thread::get_id(); }));
    }
  }
  EXPECT_EQ(ids.size(), kCount);
}

TEST_F(IoThreadsTest, ConnectionsAreDealtInTurn) {
  const size_t first = place();
  EXPECT_EQ(place(), (first + 1) % kCount);
  EXPECT_EQ(place(), (first + 2) % kCount);
  EXPECT_EQ(place(), first);
}

TEST_F(IoThreadsTest, ThoseThatShareCommitsGoToOneThread) {
  let_replies_wait_for_the_disk();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(place(), 0u);
}

TEST_F(IoThreadsTest, ThreadWithManyClientsGetsNoNewOnes) {
  let_replies_wait_for_the_disk();
  (void)run_on(0, [&] {
    for (uint64_t id = 1; id <= 256; ++id) threads_.at(0).connections.add(id, nullptr);
    return true;
  });
  EXPECT_NE(place(), 0u);
  (void)run_on(0, [&] {
    for (uint64_t id = 1; id <= 256; ++id) threads_.at(0).connections.forget(id);
    return true;
  });
}

}  // namespace
}  // namespace server::net
