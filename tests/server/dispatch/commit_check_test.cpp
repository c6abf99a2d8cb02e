// SPDX-License-Identifier: MIT
#include "server/dispatch/commit_check.h"

#include "core/bloom/scalable_filter.h"
#include "core/bloom/window.h"
#include "core/keyspace/keyspace.h"
#include "core/memory_budget.h"
#include "server/dispatch/registry.h"
#include "tests/support/command_test.h"

#ifndef NDEBUG
namespace server {
namespace {

// Tests that CommitCheck detects a change of a key that a handler has not journalled.
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
                protocol::ReplyWriter(replies, client_->session->resp), clock_.now_ms, result);
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
    entry("w").filter().rotate({1, clock_.now_ms + 10'000});
  }));
}

TEST_F(CommitCheckTest, JournalledOrUnchangedKeysPass) {
  run({"SET", "a", "1"});
  EXPECT_TRUE(is_committed({"SET", "a", "2"}, [](Context&) {}));
  EXPECT_TRUE(is_committed({"APPEND", "a", "2"}, [&](Context& ctx) {
    ASSERT_TRUE(entry("a").set_string("2"));
    ctx.changed(ctx.key(1), KeyEvent::kSet);
  }));
  EXPECT_TRUE(is_committed({"SET", "a", "3"}, [&](Context&) {
    const persistence::Journal::Group group(journal_);
    ASSERT_TRUE(entry("a").set_string("3"));
    journal_.append(0, std::array<std::string_view, 3>{"SET", "a", "3"});
  }));
}

TEST_F(CommitCheckTest, AHandlerThatForgetsEndsTheProcess) {
  run({"SET", "a", "1"});
  const Command forgetful{
      .name = "set", .flags = kWrite, .keys = one_key(kKeyRw), .handler = [](Context& ctx) {
        ctx.keyspace().erase(0, ctx.keyspace().ref("a"));
      }};
  const RegisteredCommand command{.row = &forgetful, .subcommands = {}, .full_name = "set"};
  EXPECT_DEATH(is_committed({"SET", "a", "2"},
                            [&](Context& ctx) {
                              ctx.command = &command;
                              run_handler(ctx);
                            }),
               "set changed a key and journalled nothing");
}

}  // namespace
}  // namespace server
#endif
