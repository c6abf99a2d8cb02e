// SPDX-License-Identifier: MIT
#include "server/dispatch/pause_gate.h"

#include <gtest/gtest.h>

#include "tests/support/test_threads.h"

namespace server {
namespace {

constexpr int64_t kNowMs = 1000;

TEST(PauseGateTest, AHandoverHoldsWritesBackUntilItEnds) {
  TestThreads threads;
  PauseGate gate(threads);
  gate.hold_writes(PauseGate::Hold::kHandover);
  EXPECT_TRUE(gate.holds_back(kWrite, kNowMs));
  EXPECT_TRUE(gate.holds_back(kMayReplicate, kNowMs));
  EXPECT_FALSE(gate.holds_back(kAdmin, kNowMs));
  EXPECT_FALSE(gate.holds_back_by_client(kWrite, kNowMs));
  EXPECT_EQ(threads.wakes, 0);
  gate.release_writes(PauseGate::Hold::kHandover);
  EXPECT_FALSE(gate.holds_back(kWrite, kNowMs));
  EXPECT_EQ(threads.wakes, 1);
}

TEST(PauseGateTest, TellsWhenEveryThreadHasEndedWhatItHadBegun) {
  TestThreads threads;
  PauseGate gate(threads);
  Drain::Callback on_all_passed;
  threads.on_visit = [&on_all_passed](const auto& callback) { on_all_passed = callback; };
  gate.hold_writes(PauseGate::Hold::kReload);
  bool have_ended = false;
  gate.drain([&have_ended] { have_ended = true; });
  EXPECT_TRUE(gate.holds_back(kWrite, kNowMs));
  EXPECT_FALSE(have_ended);
  on_all_passed();
  EXPECT_TRUE(have_ended);
  EXPECT_TRUE(gate.holds_back(kWrite, kNowMs)) << "until it is released";
}

TEST(PauseGateTest, NeitherPauseEndsTheOther) {
  TestThreads threads;
  PauseGate gate(threads);
  gate.hold_writes(PauseGate::Hold::kHandover);
  gate.pause(PauseGate::Mode::kWrites, kNowMs + 1, kNowMs);
  gate.end();
  EXPECT_TRUE(gate.holds_back(kWrite, kNowMs));
  gate.pause(PauseGate::Mode::kAll, kNowMs + 1, kNowMs);
  gate.release_writes(PauseGate::Hold::kHandover);
  EXPECT_TRUE(gate.holds_back(kAdmin, kNowMs));
  EXPECT_FALSE(gate.holds_back(kAdmin, kNowMs + 1));
}

TEST(PauseGateTest, EndedPauseDoesNotComeBack) {
  TestThreads threads;
  PauseGate gate(threads);
  gate.pause(PauseGate::Mode::kAll, kNowMs + 1, kNowMs);
  gate.end_if_over(kNowMs);
  EXPECT_TRUE(gate.holds_back(kWrite, kNowMs));
  gate.end_if_over(kNowMs + 1);
  EXPECT_FALSE(gate.holds_back(kWrite, kNowMs)) << "the wall clock has stepped back";
  EXPECT_FALSE(gate.may_hold_back());
}

}  // namespace
}  // namespace server
