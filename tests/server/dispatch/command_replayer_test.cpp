// SPDX-License-Identifier: MIT
//
// rename-command renames commands for clients only: journals contain original names.
#include "server/dispatch/command_replayer.h"

#include <string>
#include <vector>

#include "persistence/journal.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

class RenamedCommandReplayer : public CommandTest {
 protected:
  RenamedCommandReplayer()
      : CommandTest({{"set", "write"},
                     {"bf.add", ""},
                     {"append", "add"},
                     {"flushall", "empty"},
                     {"swapdb", "exchange"},
                     {"mset", "write-all"},
                     {"get", "set"},
                     {"multi", ""}}) {
    journal_.set_active(true);
  }
  std::string replay(CommandOrigin origin, const std::vector<std::string_view>& words) {
    CommandReplayer replayer(services_, origin);
    return std::string(replayer.execute(words));
  }
  // Returns the bytes that were journalled since the last call.
  std::string journalled() {
    std::string bytes;
    journal_.take(bytes);
    return bytes;
  }
};

TEST_F(RenamedCommandReplayer, ExecutesOriginalNames) {
  for (const auto origin : {CommandOrigin::kOwnJournal, CommandOrigin::kForeignJournal}) {
    EXPECT_EQ(replay(origin, {"SET", "key", "1"}), kOk);
    EXPECT_EQ(replay(origin, {"APPEND", "key", "2"}), integer(2));
    EXPECT_EQ(run({"SET", "key"}), bulk("12"));
    EXPECT_EQ(replay(origin, {"BF.ADD", "filter", "item"}), integer(1));
    EXPECT_EQ(replay(origin, {"MULTI"}), kOk);
    EXPECT_EQ(replay(origin, {"FLUSHALL"}), kOk);
    EXPECT_EQ(run({"DBSIZE"}), integer(0));
  }
}

TEST_F(RenamedCommandReplayer, ExecutesNamesThatAClientOfRedisUsed) {
  EXPECT_EQ(replay(CommandOrigin::kForeignJournal, {"WRITE", "key", "1"}), kOk);
  EXPECT_EQ(run({"SET", "key"}), bulk("1"));
}

TEST_F(RenamedCommandReplayer, RefusesOriginalNamesOfReadsOnly) {
  EXPECT_EQ(replay(CommandOrigin::kOwnJournal, {"GET", "key"}), error(CommandReplayer::kNoChange));
}

TEST_F(RenamedCommandReplayer, ClientsJournalOriginalNames) {
  run({"WRITE", "key", "1"});
  journalled();
  const auto journals = [this](const std::vector<std::string>& command, const std::string& name) {
    run(command);
    return journalled().find("\r\n" + name + "\r\n") != std::string::npos;
  };
  EXPECT_TRUE(journals({"ADD", "key", "2"}, "append"));
  EXPECT_TRUE(journals({"WRITE-ALL", "a", "1", "b", "2"}, "mset"));
  EXPECT_TRUE(journals({"EXCHANGE", "0", "1"}, "swapdb"));
  EXPECT_TRUE(journals({"EMPTY"}, "flushall"));
}

}  // namespace
}  // namespace server
