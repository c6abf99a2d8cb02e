// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "persistence/aof/aof_writer.h"
#include "server/base/config/config.h"
#include "server/commands/replication/wait_commands.h"
#include "server/dispatch/permissions.h"
#include "server/durability/durability.h"
#include "server/durability/loading/log_switch.h"
#include "server/durability/log/append_log.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"
#include "tests/support/virtual_disk.h"

namespace server {
namespace {

class PersistenceCommandsTest : public CommandTest {
 protected:
  PersistenceCommandsTest() {
    config_.on_change(OptionId::kAppendOnly, [this]() -> core::Result<> {
      durability_.log_switch.want(config_.flag(OptionId::kAppendOnly));
      return {};
    });
    run({"CONFIG", "SET", "appendonly", "no"});
  }
  bool info_shows_log() {
    return run({"INFO", "persistence"}).find("aof_enabled:1") != std::string::npos;
  }
};

TEST_F(PersistenceCommandsTest, TheLogIsOnOrOffWhenConfigSetIsAnswered) {
  for (const char* is_on : {"yes", "no", "yes"}) {
    EXPECT_EQ(run({"CONFIG", "SET", "appendonly", is_on}), kOk);
    EXPECT_EQ(info_shows_log(), std::string(is_on) == "yes");
  }
}

TEST_F(PersistenceCommandsTest, FailedLogSwitchKeepsAllOptions) {
  disk_.fail_from_operation(1);
  EXPECT_THAT(run({"CONFIG", "SET", "timeout", "7", "appendonly", "yes"}),
              is_error("ERR", "appendonly"));
  EXPECT_EQ(run({"CONFIG", "GET", "appendonly"}), array({bulk("appendonly"), bulk("no")}));
  EXPECT_EQ(run({"CONFIG", "GET", "timeout"}), array({bulk("timeout"), bulk("0")}));
  EXPECT_FALSE(info_shows_log());
}

// After the append log is switched on, it first needs a base file with all data. Until then a
// restart would lose new writes, so WAITAOF must not count this log.
TEST_F(PersistenceCommandsTest, WaitaofCountsNoLogThatLacksItsBase) {
  config_.set(std::vector<NamedValue>{{"appendonly", "yes"}});
  durability_.tick();
  ASSERT_TRUE(durability_.log_writer().needs_base());
  EXPECT_EQ(run({"SET", "key", "value"}), kOk);
  ASSERT_TRUE(durability_.append_log.flush());
  EXPECT_EQ(run({"WAITAOF", "1", "0", "5000"}), "");
  EXPECT_TRUE(client_->last_result.pending.reply);
}

// The writes of a transaction are journalled when the transaction ends. So BGSAVE and BGREWRITEAOF
// inside a transaction must not start a child process before the transaction ends.
TEST_F(PersistenceCommandsTest, ChildrenBeginBehindATransaction) {
  EXPECT_EQ(run({"MULTI"}), kOk);
  run({"SET", "a", "1"});
  run({"BGSAVE"});
  run({"BGREWRITEAOF"});
  EXPECT_EQ(run({"EXEC"}), array({kOk, "+Background saving scheduled\r\n",
                                  "+Background append only file rewriting scheduled\r\n"}));
  EXPECT_EQ(durability_.saves.slot.fork_count(), 0U);
}

TEST_F(PersistenceCommandsTest, WaitaofEndsWithTheLog) {
  config_.set(std::vector<NamedValue>{{"appendonly", "yes"}});
  durability_.tick();
  EXPECT_EQ(run({"WAITAOF", "1", "0", "0"}), "");
  EXPECT_EQ(client_->try_answer(), "");
  config_.set(std::vector<NamedValue>{{"appendonly", "no"}});
  while (durability_.log_is_on()) durability_.tick();
  EXPECT_EQ(client_->try_answer(), error(kNoLogToWaitFor));
}

TEST_F(PersistenceCommandsTest, NotInATransaction) {
  EXPECT_EQ(run({"MULTI"}), kOk);
  EXPECT_EQ(run({"SAVE"}), error(kNotInTransaction));
  EXPECT_EQ(run({"SHUTDOWN"}), error(kNotInTransaction));
}

}  // namespace
}  // namespace server
