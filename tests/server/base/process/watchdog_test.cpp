// SPDX-License-Identifier: MIT
#include "server/base/process/watchdog.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "server/base/process/raw_report.h"
#include "tests/support/captured_log.h"
#include "tests/support/waiting.h"

namespace server {
namespace {

// A thread that runs the given functions one after the other.
class Worker {
 public:
  Worker() : thread_([this] { run(); }) {}
  ~Worker() { finish(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Ends the thread, and returns when all posted functions have run.
  void finish() {
    if (!thread_.joinable()) return;
    post({});
    thread_.join();
  }
  // Adds a function to the thread's queue. An empty function ends the thread.
  void post(std::function<void()> function) {
    {
      const std::scoped_lock lock(mutex_);
      functions_.push_back(std::move(function));
    }
    wake_.notify_one();
  }

 private:
  void run() {
    while (true) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !functions_.empty(); });
      const std::function<void()> function = std::move(functions_.front());
      functions_.pop_front();
      lock.unlock();
      if (!function) return;
      function();
    }
  }

  std::mutex mutex_;  // this mutex guards functions_
  std::condition_variable wake_;
  std::deque<std::function<void()>> functions_;
  std::thread thread_;
};

class WatchdogTest : public ::testing::Test {
 protected:
  WatchdogTest() { prepare_reports(path_.string()); }
  ~WatchdogTest() override {
    watchdog_.stop();
    worker_.finish();
    prepare_reports("");
    std::filesystem::remove(path_);
  }

  std::string report() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t reports() const {
    size_t count = 0;
    const std::string text = report();
    for (size_t at = 0; (at = text.find(kTitle, at)) != std::string::npos; ++at) ++count;
    return count;
  }
  // Keeps the worker busy until the watchdog has reported the worker.
  void be_stuck_until_reported() {
    const size_t before = reports();
    worker_.post(
        [this, before] { EXPECT_TRUE(support::wait_until([&] { return reports() > before; })); });
    EXPECT_TRUE(support::wait_until([&] { return reports() > before; }));
  }

  static constexpr std::string_view kTitle = "--- WATCHDOG TIMER EXPIRED ---";
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("watchdog-" + std::to_string(::getpid()) + ".log");
  CapturedLog log_;
  Worker worker_;
  std::atomic<int> questions_{0};
  Watchdog watchdog_{1, [this](size_t index, std::function<void()> answer) {
                       EXPECT_EQ(index, 0U);
                       ++questions_;
                       worker_.post(std::move(answer));
                     }};
};

TEST_F(WatchdogTest, StuckThreadIsReportedOncePerStop) {
  // With a shorter period, a busy machine could cause further reports.
  watchdog_.set_period(std::chrono::seconds(1));
  ASSERT_TRUE(support::wait_until([this] { return questions_ > 1; }));
  EXPECT_EQ(report(), "");
  be_stuck_until_reported();
  // The log gets the title before the stack trace, so the test waits until the log contains a
  // function name.
  EXPECT_TRUE(support::wait_until([this] { return report().find("_tests") != std::string::npos; }));
  const int before = questions_;
  ASSERT_TRUE(support::wait_until([&] { return questions_ > before + 1; }));
  EXPECT_EQ(reports(), 1U);
  be_stuck_until_reported();
  EXPECT_EQ(reports(), 2U);
  watchdog_.stop();
  EXPECT_NE(log_.text().find("I/O thread 0 has not come back to its event loop for "),
            std::string::npos);
}

TEST_F(WatchdogTest, PeriodOfZeroEndsTheWatch) {
  watchdog_.set_period(std::chrono::milliseconds(0));
  EXPECT_EQ(questions_, 1) << "for the thread's id";
  watchdog_.set_period(std::chrono::milliseconds(200));
  ASSERT_TRUE(support::wait_until([this] { return questions_ > 1; }));
  watchdog_.set_period(std::chrono::milliseconds(0));
  const int before = questions_;
  support::let_time_pass(std::chrono::milliseconds(200), "a question that must not come");
  EXPECT_EQ(questions_, before);
}

}  // namespace
}  // namespace server
