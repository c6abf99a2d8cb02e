// SPDX-License-Identifier: MIT
#include "server/dispatch/commit_check.h"

#include "core/bloom/scalable_filter.h"
#include "core/bloom/window.h"
#include "core/keyspace/keyspace.h"
#include "core/memory/memory_budget.h"
#include "server/dispatch/registry.h"
#include "tests/support/command_test.h"

#ifndef NDEBUG
namespace server {
namespace {

// Tests that CommitCheck detects a change that a handler has not committed.
class CommitCheckTest : public CommandTest {
 protected:
  // Runs `act` as if it were the handler of this command. Returns CommitCheck::is_committed()
  // afterwards.
  template <class Act>
  bool is_committed(const std::vector<std::string_view>& args, Act&& act) {
    const Request request{.args = args};
    protocol::OutputBuffer replies;
    CommandResult result;
    Context ctx({services_, statistics_.thread(0), *client_->session, client_->dispatcher}, request,
                protocol::ReplyWriter(replies, client_->session->client->resp), clock_.now_ms,
                result);
    ctx.command = registry_->find(args[0]);
    const CommitCheck check(ctx);
    act(ctx);
    return check.is_committed();
  }
  core::keyspace::Entry& entry(std::string_view name) {
    return *keyspace_.find_any(0, keyspace_.ref(name));
  }
};

TEST_F(CommitCheckTest, AnUnjournalledChangeIsFound) {
  run({"SET", "a", "1"});
  run({"BF.RESERVE", "f", "0.01", "100"});
  run({"BF.RESERVE", "w", "0.01", "100", "WINDOW", "10"});
  const auto expires = [&](Context&) {
    keyspace_.set_expiry(0, keyspace_.ref("a"), entry("a"), clock_.now_ms + 1000);
  };
  EXPECT_FALSE(
      is_committed({"SET", "a", "2"}, [&](Context&) { ASSERT_TRUE(entry("a").set_string("2")); }));
  EXPECT_FALSE(is_committed({"EXPIRE", "a", "1"}, expires));
  EXPECT_FALSE(
      is_committed({"DEL", "x", "a"}, [&](Context&) { keyspace_.erase(0, keyspace_.ref("a")); }));
  EXPECT_FALSE(is_committed({"BF.ADD", "f", "x"}, [&](Context&) {
    entry("f").filter().add("x", core::UnlimitedMemory());
  }));
  EXPECT_FALSE(is_committed({"BF.ADD", "w", "x"}, [&](Context&) {
    entry("w").filter().rotate({1, clock_.now_ms + 10'000}, core::UnlimitedMemory());
  }));
}

// The value does not change, so only the marked key shows that an effect is missing.
TEST_F(CommitCheckTest, AMarkedKeyMustBeJournalled) {
  run({"SET", "a", "1"});
  const auto marks_only = [](Context& ctx) { ctx.commit(ctx.key(1), KeyEvent::kSet); };
  EXPECT_FALSE(is_committed({"SET", "a", "1"}, marks_only)) << "SET journals effects";
  EXPECT_TRUE(is_committed({"APPEND", "a", ""}, marks_only)) << "APPEND is journalled verbatim";
  EXPECT_TRUE(is_committed({"SET", "a", "1"}, [](Context& ctx) {
    ctx.commit(ctx.key(1), KeyEvent::kSet, {"SET", "a", "1"});
  }));
  EXPECT_FALSE(is_committed({"MSET", "a", "1", "b", "1"}, [](Context& ctx) {
    ctx.commit(ctx.key(1), KeyEvent::kSet, {"SET", "a", "1"});
    ctx.mark_changed(0, ctx.key(3), KeyEvent::kSet);
  }));
  client_->session->origin = CommandOrigin::kForeignJournal;
  EXPECT_FALSE(is_committed({"SET", "a", "1"}, marks_only)) << "a replica has a journal, too";
  journal_.set_active(false);
  EXPECT_TRUE(is_committed({"SET", "a", "1"}, marks_only)) << "no journal";
}

TEST_F(CommitCheckTest, EachChangedKeyMustBeCommitted) {
  run({"MSET", "a", "1", "b", "1"});
  const auto renames = [&](Context&) {
    keyspace_.erase(0, keyspace_.ref("a"));
    ASSERT_TRUE(entry("b").set_string("2"));
  };
  EXPECT_FALSE(is_committed({"RENAME", "a", "b"}, [&](Context& ctx) {
    renames(ctx);
    ctx.commit(ctx.key(1), KeyEvent::kRenameFrom);
  }));
  run({"MSET", "a", "1", "b", "1"});
  EXPECT_TRUE(is_committed({"RENAME", "a", "b"}, [&](Context& ctx) {
    renames(ctx);
    ctx.commit(ctx.key(1), KeyEvent::kRenameFrom);
    ctx.commit(ctx.key(2), KeyEvent::kRenameTo);
  }));
  EXPECT_FALSE(is_committed({"SET", "b", "3"}, [&](Context& ctx) {
    ASSERT_TRUE(entry("b").set_string("3"));
    ctx.journal({"SET", "b", "3"});
  })) << "watchers of the key get no notification";
}

TEST_F(CommitCheckTest, JournalledOrUnchangedKeysPass) {
  run({"SET", "a", "1"});
  EXPECT_TRUE(is_committed({"SET", "a", "2"}, [](Context&) {}));
  EXPECT_TRUE(is_committed({"APPEND", "a", "2"}, [&](Context& ctx) {
    ASSERT_TRUE(entry("a").set_string("2"));
    ctx.commit(ctx.key(1), KeyEvent::kSet);
  }));
  EXPECT_TRUE(is_committed({"SET", "a", "3"}, [&](Context&) {
    const persistence::Journal::Group group(journal_);
    ASSERT_TRUE(entry("a").set_string("3"));
    journal_.append(0, std::array<std::string_view, 3>{"SET", "a", "3"});
  }));
}

TEST_F(CommitCheckTest, AHandlerThatForgetsEndsTheProcess) {
  run({"SET", "a", "1"});
  const auto run_row = [&](const Command& row) {
    const RegisteredCommand command{.row = &row, .subcommands = {}, .full_name = "set"};
    is_committed({"SET", "a", "2"}, [&](Context& ctx) {
      ctx.command = &command;
      run_handler(ctx);
    });
  };
  Command row{
      .name = "set", .flags = kWrite, .keys = one_key(kKeyRw), .journalled = Journalled::kEffects};
  row.handler = [](Context& ctx) { ctx.keyspace().erase(0, ctx.keyspace().ref("a")); };
  EXPECT_DEATH(run_row(row), "set changed a key and did not commit the change");
  row.handler = [](Context& ctx) { ctx.commit(ctx.key(1), KeyEvent::kSet); };
  EXPECT_DEATH(run_row(row), "set changed a key and did not commit the change");
}

// EXEC runs each command as the dispatcher runs a command outside of a transaction.
TEST_F(CommitCheckTest, AForgetfulCommandInExecEndsTheProcess) {
  run({"SET", "a", "1"});
  const Command row{.name = "set",
                    .flags = kWrite,
                    .keys = one_key(kKeyRw),
                    .handler = [](Context& ctx) { ctx.commit(ctx.key(1), KeyEvent::kSet); },
                    .journalled = Journalled::kEffects};
  const RegisteredCommand command{.row = &row, .subcommands = {}, .full_name = "set"};
  run({"MULTI"});
  client_->session->transaction.queued_flags |= kWrite;
  client_->session->transaction.queue.push_back({&command, {"SET", "a", "2"}});
  EXPECT_DEATH(run({"EXEC"}), "set changed a key and did not commit the change");
}

}  // namespace
}  // namespace server
#endif
