// SPDX-License-Identifier: MIT
//
// ACL, and what users may do. Replies were measured on Redis 7.0.15.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/command_test.h"

namespace server {
namespace {

using ::testing::HasSubstr;

const std::string kNoKey =
    "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n";
const std::string kNoChannel =
    "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n";

std::string no_command(const std::string& name) {
  return "-NOPERM this user has no permissions to run the '" + name + "' command\r\n";
}

class AclCommandsTest : public CommandTest {
 protected:
  // Makes alice with these rules, and `client_` alice.
  void become_alice(std::vector<std::string> rules) {
    rules.insert(rules.begin(), {"ACL", "SETUSER", "alice", "on", ">p"});
    ASSERT_EQ(run_as_other(rules), kOk);
    ASSERT_EQ(run({"AUTH", "alice", "p"}), kOk);
  }
  void change_alice(std::vector<std::string> rules) {
    rules.insert(rules.begin(), {"ACL", "SETUSER", "alice"});
    ASSERT_EQ(run_as_other(rules), kOk);
  }
};

TEST_F(AclCommandsTest, ARestrictedUserMayOnlyWhatItsRulesSay) {
  become_alice({"+get", "+set", "+config|get", "~k*"});
  EXPECT_EQ(run({"GET", "k"}), kNull);
  EXPECT_EQ(run({"GET", "x"}), kNoKey);
  EXPECT_EQ(run({"MGET", "k"}), no_command("mget"));
  EXPECT_EQ(run({"CONFIG", "SET", "a", "b"}), no_command("config|set"));
  EXPECT_EQ(run({"CONFIG", "GET", "nothing"}), "*0\r\n");
  EXPECT_EQ(run({"GET"}), error("ERR wrong number of arguments for 'get' command"));
  change_alice({"+mget", "~*"});
  EXPECT_EQ(run({"MGET", "x"}), array({kNull}));
}

TEST_F(AclCommandsTest, AQueueIsCheckedTwice) {
  become_alice({"+get", "+set", "+multi", "+exec", "+publish", "~k", "&c"});
  ASSERT_EQ(run({"MULTI"}), kOk);
  EXPECT_EQ(run({"GET", "x"}), kNoKey);
  EXPECT_THAT(run({"EXEC"}), HasSubstr("EXECABORT"));
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"MULTI"}, {"GET", "k"}, {"SET", "k", "1"}, {"PUBLISH", "c", "m"}}) {
    (void)run(command);
  }
  change_alice({"-get", "resetchannels"});
  const std::string changed =
      "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "
      "call. This command is no longer allowed for the following reason: ";
  EXPECT_EQ(run({"EXEC"}),
            array({changed + "no permission to execute the command or subcommand\r\n", kOk,
                   changed + "no permission to access one of the channels used as arguments\r\n"}));
  ASSERT_EQ(run({"MULTI"}), kOk);
  ASSERT_EQ(run({"SET", "k", "2"}), "+QUEUED\r\n");
  change_alice({"resetkeys"});
  EXPECT_EQ(run({"EXEC"}), array({changed + "no permission to touch the specified keys\r\n"}));
}

TEST_F(AclCommandsTest, ATransactionMayTakeItsOwnRights) {
  become_alice({"+@all", "~*", "&*"});
  ASSERT_EQ(run({"MULTI"}), kOk);
  ASSERT_EQ(run({"ACL", "SETUSER", "alice", "-get"}), "+QUEUED\r\n");
  ASSERT_EQ(run({"GET", "k"}), "+QUEUED\r\n");
  ASSERT_EQ(run({"ACL", "DELUSER", "alice"}), "+QUEUED\r\n");
  ASSERT_EQ(run({"SET", "k", "1"}), "+QUEUED\r\n");
  const std::string replies = run({"EXEC"});
  EXPECT_THAT(replies, HasSubstr("no permission to execute the command"));
  EXPECT_THAT(replies, HasSubstr("-NOAUTH"));
  EXPECT_EQ(client_->last_outcome, Outcome::kClose);
  EXPECT_EQ(run_as_other({"GET", "k"}), kNull);
}

TEST_F(AclCommandsTest, ADeletedUserIsSentAway) {
  become_alice({"+@all", "~*"});
  EXPECT_EQ(run_as_other({"ACL", "DELUSER", "alice", "nobody"}), integer(1));
  EXPECT_FALSE(client_->dispatcher.keeps_rights());
  EXPECT_THAT(run({"GET", "k"}), HasSubstr("NOAUTH"));
  EXPECT_EQ(client_->last_outcome, Outcome::kClose);
  EXPECT_EQ(run_as_other({"ACL", "DELUSER", "default"}),
            error("ERR The 'default' user cannot be removed"));
}

TEST_F(AclCommandsTest, WhoDeletesItselfGetsItsReply) {
  become_alice({"+@all", "~*"});
  EXPECT_EQ(run({"ACL", "DELUSER", "alice"}), integer(1));
  EXPECT_EQ(client_->last_outcome, Outcome::kClose);
}

TEST_F(AclCommandsTest, OthersAreWokenToLookAtTheirRights) {
  become_alice({"+@all", "~*", "&*"});
  int wakes = 0;
  client_->session->wake = [&] { ++wakes; };
  ASSERT_EQ(run_as_other({"ACL", "SETUSER", "bob"}), kOk);
  EXPECT_EQ(wakes, 0);
  (void)run({"SUBSCRIBE", "c"});
  change_alice({"resetchannels"});
  EXPECT_EQ(wakes, 1);
  EXPECT_FALSE(client_->dispatcher.keeps_rights());
}

TEST_F(AclCommandsTest, APasswordOfTheDefaultUserIsAskedOfNewClientsOnly) {
  ASSERT_EQ(run({"PING"}), "+PONG\r\n");
  users_.set_default_password("x");
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
  EXPECT_EQ(run({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(run({"PING"}), error("NOAUTH Authentication required."));
  // Opened again it asks nobody.
  ASSERT_EQ(run_as_other({"ACL", "SETUSER", "default", "nopass"}), kOk);
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
  EXPECT_EQ(run({"ACL", "WHOAMI"}), bulk("default"));
}

TEST_F(AclCommandsTest, GetuserShowsAllOfAUser) {
  ASSERT_EQ(run({"ACL", "SETUSER", "bob", "on", ">a", "+get", "%R~x", "&c", "(+set ~y)"}), kOk);
  const std::string hash = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
  EXPECT_EQ(run({"ACL", "GETUSER", "bob"}),
            array({bulk("flags"), array({bulk("on")}), bulk("passwords"), array({bulk(hash)}),
                   bulk("commands"), bulk("-@all +get"), bulk("keys"), bulk("%R~x"),
                   bulk("channels"), bulk("&c"), bulk("selectors"),
                   array({array({bulk("commands"), bulk("-@all +set"), bulk("keys"), bulk("~y"),
                                 bulk("channels"), bulk("")})})}));
  EXPECT_EQ(run({"ACL", "GETUSER", "nobody"}), kNull);
  EXPECT_EQ(run({"ACL", "USERS"}), array({bulk("bob"), bulk("default")}));
  EXPECT_EQ(run({"ACL", "LIST"}),
            array({bulk("user bob on #" + hash +
                        " %R~x resetchannels &c -@all +get (~y resetchannels -@all +set)"),
                   bulk("user default on nopass ~* &* +@all")}));
}

TEST_F(AclCommandsTest, DryRunTellsWithoutRunning) {
  ASSERT_EQ(run({"ACL", "SETUSER", "bob", "+set", "~k"}), kOk);
  EXPECT_EQ(run({"ACL", "DRYRUN", "bob", "SET", "k", "v"}), kOk);
  EXPECT_EQ(run({"GET", "k"}), kNull);
  EXPECT_EQ(run({"ACL", "DRYRUN", "bob", "SET", "x", "v"}),
            bulk("This user has no permissions to access the 'x' key"));
  EXPECT_EQ(run({"ACL", "DRYRUN", "bob", "GET", "k"}),
            bulk("This user has no permissions to run the 'get' command"));
  EXPECT_EQ(run({"ACL", "DRYRUN", "carol", "GET", "k"}), error("ERR User 'carol' not found"));
  EXPECT_EQ(run({"ACL", "DRYRUN", "bob", "nope"}), error("ERR Command 'nope' not found"));
  EXPECT_EQ(run({"ACL", "DRYRUN", "bob", "GET"}),
            error("ERR wrong number of arguments for 'get' command"));
}

TEST_F(AclCommandsTest, TheLogTellsWhatWasDenied) {
  become_alice({"+get", "~k"});
  EXPECT_EQ(run({"GET", "x"}), kNoKey);
  EXPECT_EQ(run({"GET", "x"}), kNoKey);
  EXPECT_EQ(run({"AUTH", "bob", "secret"}),
            error("WRONGPASS invalid username-password pair or user is disabled."));
  advance_ms(1500);
  const std::string log = run_as_other({"ACL", "LOG"});
  EXPECT_THAT(log, HasSubstr("*2\r\n*14\r\n$5\r\ncount\r\n:1\r\n$6\r\nreason\r\n$4\r\nauth\r\n"));
  EXPECT_THAT(log, HasSubstr("$6\r\nobject\r\n$4\r\nAUTH\r\n$8\r\nusername\r\n$3\r\nbob\r\n"));
  EXPECT_THAT(log, HasSubstr("count\r\n:2\r\n$6\r\nreason\r\n$3\r\nkey\r\n"));
  EXPECT_THAT(log, HasSubstr("$11\r\nage-seconds\r\n$3\r\n1.5\r\n"));
  EXPECT_THAT(log, HasSubstr("user=alice"));
  EXPECT_THAT(log, ::testing::Not(HasSubstr("secret")));
  EXPECT_EQ(run_as_other({"ACL", "LOG", "0"}), "*0\r\n");
  EXPECT_EQ(run_as_other({"ACL", "LOG", "-1"}), "*0\r\n");
  EXPECT_EQ(run_as_other({"ACL", "LOG", "x"}), error(kNotAnInteger));
  EXPECT_EQ(run_as_other({"ACL", "LOG", "RESET"}), kOk);
  EXPECT_EQ(run_as_other({"ACL", "LOG"}), "*0\r\n");
}

TEST_F(AclCommandsTest, CategoriesHaveTheirCommands) {
  EXPECT_THAT(run({"ACL", "CAT"}), HasSubstr("$5\r\nbloom\r\n"));
  EXPECT_THAT(run({"ACL", "CAT", "BLOOM"}), HasSubstr("$6\r\nbf.add\r\n"));
  EXPECT_THAT(run({"ACL", "CAT", "dangerous"}), HasSubstr("$11\r\nacl|setuser\r\n"));
  EXPECT_EQ(run({"ACL", "CAT", "stream"}), "*0\r\n");
  EXPECT_EQ(run({"ACL", "CAT", "zz"}), error("ERR Unknown category 'zz'"));
}

TEST_F(AclCommandsTest, GenpassCountsBits) {
  EXPECT_EQ(run({"ACL", "GENPASS"}).substr(0, 5), "$64\r\n");
  EXPECT_EQ(run({"ACL", "GENPASS", "5"}).substr(0, 4), "$2\r\n");
  for (const char* const bits : {"0", "-1", "4097"}) {
    EXPECT_EQ(run({"ACL", "GENPASS", bits}),
              error("ERR ACL GENPASS argument must be the number of bits for the output password, "
                    "a positive number up to 4096"));
  }
  EXPECT_EQ(run({"ACL", "GENPASS", "x"}), error(kNotAnInteger));
}

TEST_F(AclCommandsTest, WithoutAFileThereIsNothingToLoad) {
  EXPECT_THAT(run({"ACL", "LOAD"}), HasSubstr("not configured to use an ACL file"));
  EXPECT_THAT(run({"ACL", "SAVE"}), HasSubstr("not configured to use an ACL file"));
}

TEST_F(AclCommandsTest, HelloLogsInOrChangesNothing) {
  ASSERT_EQ(run({"ACL", "SETUSER", "bob", "on", ">p", "+acl|whoami"}), kOk);
  EXPECT_THAT(run({"HELLO", "3", "AUTH", "bob", "wrong"}), HasSubstr("WRONGPASS"));
  EXPECT_THAT(run({"HELLO", "3", "AUTH", "bob", "p", "SETNAME", "a b"}), HasSubstr("-ERR"));
  EXPECT_EQ(run({"ACL", "WHOAMI"}), bulk("default"));
  EXPECT_THAT(run({"HELLO", "2", "AUTH", "bob", "p", "SETNAME", "x"}), HasSubstr("server"));
  EXPECT_EQ(run({"ACL", "WHOAMI"}), bulk("bob"));
  EXPECT_EQ(run({"PING"}), no_command("ping"));
}

TEST_F(AclCommandsTest, SubscribersNeedTheirChannels) {
  become_alice({"+subscribe", "+psubscribe", "+ssubscribe", "+unsubscribe", "&a*"});
  EXPECT_EQ(run({"SUBSCRIBE", "a1", "b"}), kNoChannel);
  EXPECT_EQ(run({"PSUBSCRIBE", "a?"}), kNoChannel);
  EXPECT_EQ(run({"SSUBSCRIBE", "b"}), kNoChannel);
  EXPECT_FALSE(client_->session->subscriptions.any());
  EXPECT_EQ(run({"UNSUBSCRIBE", "b"}), array({bulk("unsubscribe"), bulk("b"), integer(0)}));
  EXPECT_THAT(run({"PSUBSCRIBE", "a*"}), HasSubstr("psubscribe"));
}

}  // namespace
}  // namespace server
