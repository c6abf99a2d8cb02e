// SPDX-License-Identifier: MIT
#include "server/dispatch/drain.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/support/test_threads.h"

namespace server {
namespace {

// A drain visits every I/O thread, and ends after the last visit. The test calls pass() to simulate
// the end of the last visit.
class DrainTest : public ::testing::Test {
 protected:
  DrainTest() {
    threads_.on_visit = [this](const Drain::Callback& on_all_passed) {
      EXPECT_FALSE(on_all_passed_) << "one at a time";
      on_all_passed_ = on_all_passed;
    };
  }
  void pass() { std::exchange(on_all_passed_, {})(); }
  Drain::Callback record(const std::string& word) {
    return [this, word] { ended_ += word; };
  }

  TestThreads threads_;
  Drain drain_{threads_};
  Drain::Callback on_all_passed_;
  std::string ended_;
};

TEST_F(DrainTest, EndsWhenAllThreadsHavePassed) {
  drain_.begin(record("a"));
  EXPECT_EQ(ended_, "");
  pass();
  EXPECT_EQ(ended_, "a");
  EXPECT_FALSE(on_all_passed_);
  drain_.begin(record("b"));
  pass();
  EXPECT_EQ(ended_, "ab");
}

// The first drain may have visited a thread that has run further commands since. So a drain that
// begins during the first drain must wait until all threads have been visited again.
TEST_F(DrainTest, DrainBegunMeanwhileWaitsForAnotherVisit) {
  drain_.begin(record("a"));
  drain_.begin(record("b"));
  drain_.begin(record("c"));
  pass();
  EXPECT_EQ(ended_, "a");
  pass();
  EXPECT_EQ(ended_, "abc");
  EXPECT_FALSE(on_all_passed_);
}

TEST_F(DrainTest, CallbackMayBeginTheNextDrain) {
  drain_.begin([this] {
    ended_ += "a";
    drain_.begin(record("b"));
    ended_ += ".";
  });
  pass();
  EXPECT_EQ(ended_, "a.");
  pass();
  EXPECT_EQ(ended_, "a.b");
}

}  // namespace
}  // namespace server
