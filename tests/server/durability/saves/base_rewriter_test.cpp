// SPDX-License-Identifier: MIT
#include "server/durability/saves/base_rewriter.h"

#include <gtest/gtest.h>

#include "server/durability/durability_parts.h"
#include "server/durability/log/append_log.h"
#include "server/durability/saves/save_child.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "tests/support/durable_process.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

using durable_process::Process;
using virtual_disk::VirtualDisk;

class BaseRewriterTest : public ::testing::Test {
 protected:
  void begin(const SaveChild::Starter& start_child) {
    process_ = std::make_unique<Process>(disk_, "yes", start_child);
    process_->append("key", "value");
    ASSERT_TRUE(process_->durability.append_log.flush());
  }
  BaseRewriter& rewriter() { return process_->durability.saves.rewrites; }
  SaveSlot& slot() { return process_->durability.saves.slot; }

  VirtualDisk disk_;
  std::unique_ptr<Process> process_;
};

TEST_F(BaseRewriterTest, ARequestClaimsTheSlotAndTheNextTickForks) {
  begin(SaveChild::start_here);
  const auto started = rewriter().request();
  ASSERT_TRUE(started);
  EXPECT_EQ(*started, SaveStart::kStarted);
  EXPECT_EQ(slot().task(), SaveTask::kRewrite);
  EXPECT_FALSE(rewriter().request());
  EXPECT_EQ(slot().fork_count(), 0U);
  process_->durability.tick();
  EXPECT_EQ(slot().fork_count(), 1U);
  process_->durability.tick();
  EXPECT_EQ(rewriter().record().count, 1U);
  const auto wanted = process_->contents();
  ASSERT_TRUE(process_->durability.finish());
  process_.reset();
  EXPECT_EQ(Process(disk_, "yes", SaveChild::start_here).contents(), wanted);
}

TEST_F(BaseRewriterTest, BesideAnotherTaskOneIsScheduled) {
  begin(SaveChild::start_here);
  ASSERT_TRUE(slot().claim(SaveTask::kSave));
  const auto scheduled = rewriter().request();
  ASSERT_TRUE(scheduled);
  EXPECT_EQ(*scheduled, SaveStart::kScheduled);
  EXPECT_TRUE(rewriter().is_scheduled());
  slot().release();
  for (int i = 0; i < 2; ++i) process_->durability.tick();
  EXPECT_EQ(rewriter().record().count, 1U);
  EXPECT_FALSE(rewriter().is_scheduled());
}

TEST_F(BaseRewriterTest, AnEndThatIsTakenBackLetsItBeginAfterAll) {
  begin(SaveChild::start_here);
  ASSERT_TRUE(rewriter().request());
  slot().refuse_children(true);
  EXPECT_FALSE(rewriter().request());
  process_->durability.tick();
  EXPECT_EQ(slot().task(), SaveTask::kNone);
  EXPECT_EQ(slot().fork_count(), 0U);
  slot().refuse_children(false);
  for (int i = 0; i < 2; ++i) process_->durability.tick();
  EXPECT_EQ(rewriter().record().count, 1U);
}

TEST_F(BaseRewriterTest, AGrownLogIsRewritten) {
  begin(SaveChild::start_here);
  const NamedValue least{"auto-aof-rewrite-min-size", "1"};
  ASSERT_TRUE(process_->config.set({&least, 1}));
  for (int i = 0; i < 2; ++i) process_->durability.tick();
  EXPECT_EQ(rewriter().record().count, 1U);
}

TEST_F(BaseRewriterTest, AFailedOneIsTriedAgainLater) {
  begin(durable_process::start_failing_child);
  const NamedValue least{"auto-aof-rewrite-min-size", "1"};
  ASSERT_TRUE(process_->config.set({&least, 1}));
  while (rewriter().record().failures_in_a_row < 1) process_->durability.tick();
  for (int i = 0; i < 5; ++i) process_->durability.tick();
  EXPECT_EQ(slot().fork_count(), 1U);
  process_->clock.now_ms += 1'000;
  while (rewriter().record().failures_in_a_row < 2) process_->durability.tick();
  EXPECT_EQ(slot().fork_count(), 2U);
}

}  // namespace
}  // namespace server
