// SPDX-License-Identifier: MIT
//
// Tests ACL commands and the permissions of users. Replies were measured on Redis 7.0.15.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "protocol/error_texts.h"
#include "server/base/config/config.h"
#include "server/commands/connection/connection_commands.h"
#include "server/dispatch/permissions.h"
#include "server/session/acl/acl_options.h"
#include "server/session/acl/users.h"
#include "server/session/session.h"
#include "server/session/session_user.h"
#include "tests/support/clients_fixture.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const ::testing::Matcher<const std::string&> kNoKey = is_error("NOPERM", "one of the keys");
const ::testing::Matcher<const std::string&> kNoChannel = is_error("NOPERM", "one of the channels");

std::string no_command(const std::string& name) {
  return "-NOPERM this user has no permissions to run the '" + name + "' command\r\n";
}

class AclCommandsTest : public CommandTest {
 protected:
  // Creates alice with these rules, and logs `client_` in as alice.
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
  EXPECT_THAT(run({"GET", "x"}), kNoKey);
  EXPECT_EQ(run({"MGET", "k"}), no_command("mget"));
  EXPECT_EQ(run({"CONFIG", "SET", "a", "b"}), no_command("config|set"));
  EXPECT_EQ(run({"CONFIG", "GET", "nothing"}), "*0\r\n");
  EXPECT_EQ(run({"GET"}), error(protocol::wrong_arity("get")));
  change_alice({"+mget", "~*"});
  EXPECT_EQ(run({"MGET", "x"}), array({kNull}));
}

TEST_F(AclCommandsTest, AQueueIsCheckedTwice) {
  become_alice({"+get", "+set", "+multi", "+exec", "+publish", "~k", "&c"});
  ASSERT_EQ(run({"MULTI"}), kOk);
  EXPECT_THAT(run({"GET", "x"}), kNoKey);
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
  EXPECT_EQ(client_->last_result.outcome, Outcome::kClose);
  EXPECT_EQ(run_as_other({"GET", "k"}), kNull);
}

TEST_F(AclCommandsTest, ADeletedUserIsSentAway) {
  become_alice({"+@all", "~*"});
  EXPECT_EQ(run_as_other({"ACL", "DELUSER", "alice", "nobody"}), integer(1));
  EXPECT_FALSE(refresh_user(*client_->session, users_));
  EXPECT_THAT(run({"GET", "k"}), HasSubstr("NOAUTH"));
  EXPECT_EQ(client_->last_result.outcome, Outcome::kClose);
  EXPECT_THAT(run_as_other({"ACL", "DELUSER", "default"}), is_error("ERR", "'default'"));
}

TEST_F(AclCommandsTest, UserThatDeletesItselfGetsItsReply) {
  become_alice({"+@all", "~*"});
  EXPECT_EQ(run({"ACL", "DELUSER", "alice"}), integer(1));
  EXPECT_EQ(client_->last_result.outcome, Outcome::kClose);
}

TEST_F(AclCommandsTest, OthersAreWokenToLookAtTheirRights) {
  become_alice({"+@all", "~*", "&*"});
  int wakes = 0;
  client_->session->client->wake = [&] { ++wakes; };
  ASSERT_EQ(run_as_other({"ACL", "SETUSER", "bob"}), kOk);
  EXPECT_EQ(wakes, 0);
  (void)run({"SUBSCRIBE", "c"});
  change_alice({"resetchannels"});
  EXPECT_GE(wakes, 1);
  EXPECT_FALSE(refresh_user(*client_->session, users_));
}

TEST_F(AclCommandsTest, DefaultPasswordAppliesToNewClientsOnly) {
  ASSERT_EQ(run({"PING"}), "+PONG\r\n");
  users_.set_default_password("x");
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
  EXPECT_EQ(run({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(run({"PING"}), error(kNotAuthenticated));
  // A default user with nopass needs no login after RESET.
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
  EXPECT_THAT(run({"ACL", "DRYRUN", "carol", "GET", "k"}), is_error("ERR", "'carol'"));
  EXPECT_THAT(run({"ACL", "DRYRUN", "bob", "nope"}), is_error("ERR", "Command 'nope'"));
  EXPECT_EQ(run({"ACL", "DRYRUN", "bob", "GET"}), error(protocol::wrong_arity("get")));
}

TEST_F(AclCommandsTest, TheLogTellsWhatWasDenied) {
  become_alice({"+get", "~k"});
  EXPECT_THAT(run({"GET", "x"}), kNoKey);
  EXPECT_THAT(run({"GET", "x"}), kNoKey);
  EXPECT_EQ(run({"AUTH", "bob", "secret"}), error(kWrongPassword));
  advance_ms(1500);
  const std::string log = run_as_other({"ACL", "LOG"});
  EXPECT_THAT(log, HasSubstr("*2\r\n*20\r\n$5\r\ncount\r\n:1\r\n$6\r\nreason\r\n$4\r\nauth\r\n"));
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
  EXPECT_THAT(run({"ACL", "CAT", "zz"}), is_error("ERR", "'zz'"));
}

TEST_F(AclCommandsTest, GenpassCountsBits) {
  EXPECT_EQ(run({"ACL", "GENPASS"}).substr(0, 5), "$64\r\n");
  EXPECT_EQ(run({"ACL", "GENPASS", "5"}).substr(0, 4), "$2\r\n");
  for (const char* const bits : {"0", "-1", "4097"}) {
    EXPECT_THAT(run({"ACL", "GENPASS", bits}), is_error("ERR", "4096"));
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
  EXPECT_THAT(run({"SUBSCRIBE", "a1", "b"}), kNoChannel);
  EXPECT_THAT(run({"PSUBSCRIBE", "a?"}), kNoChannel);
  EXPECT_THAT(run({"SSUBSCRIBE", "b"}), kNoChannel);
  EXPECT_FALSE(client_->session->subscriptions.any());
  EXPECT_EQ(run({"UNSUBSCRIBE", "b"}), array({bulk("unsubscribe"), bulk("b"), integer(0)}));
  EXPECT_THAT(run({"PSUBSCRIBE", "a*"}), HasSubstr("psubscribe"));
}

// Tests the descriptions of users in ACL LIST and ACL GETUSER, which are those of Redis.
class AclDescriptionsTest : public CommandTest {
 protected:
  // Creates the user `d` with `rules`. Expects that ACL LIST shows "user d", `before` and
  // `commands`, and that ACL GETUSER shows `commands`.
  void expect_shown(const std::string& rules, const std::string& commands,
                    const std::string& before = "off sanitize-payload resetchannels ") {
    std::vector<std::string> words = net::words_in("ACL SETUSER d reset " + rules);
    ASSERT_EQ(run(words), kOk) << rules;
    EXPECT_EQ(run({"ACL", "LIST"}), array({bulk("user d " + before + commands),
                                           bulk("user default on nopass ~* &* +@all")}));
    EXPECT_THAT(run({"ACL", "GETUSER", "d"}), HasSubstr(bulk("commands") + bulk(commands)));
  }
};

TEST_F(AclDescriptionsTest, AllAndNothing) {
  expect_shown("+@all", "+@all");
  expect_shown("-@all", "-@all");
  expect_shown("reset", "-@all");
}

TEST_F(AclDescriptionsTest, CategoriesStayWhatTheyWere) {
  expect_shown("+@all -@dangerous", "+@all -@dangerous");
  expect_shown("+@read", "-@all +@read");
  expect_shown("+@write +@read", "-@all +@write +@read");
  expect_shown("+@string -get", "-@all +@string -get");
}

TEST_F(AclDescriptionsTest, SingleCommandsAndSubcommands) {
  expect_shown("+get", "-@all +get");
  expect_shown("+@all -config|set", "+@all -config|set");
  expect_shown("+@all -client +client|list", "+@all -client +client|list");
  expect_shown("+select|0", "-@all +select|0");
}

TEST_F(AclDescriptionsTest, RevokedAndRestoredRightIsNotShown) {
  expect_shown("+@all -get +get", "+@all");
}

TEST_F(AclDescriptionsTest, EverythingAtOnce) {
  const std::string hash = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
  ASSERT_EQ(run(net::words_in("ACL SETUSER d reset on >x ~a %R~b &c +get (~y +set)")), kOk);
  EXPECT_THAT(run({"ACL", "LIST"}),
              HasSubstr("user d on sanitize-payload #" + hash +
                        " ~a %R~b resetchannels &c -@all +get (~y resetchannels -@all +set)\r\n"));
}

// The expected error replies were recorded from Redis 7.0.15.
class AclErrorsTest : public CommandTest {
 protected:
  std::string reply_to(const std::string& line) { return run(net::words_in(line)); }
};

TEST_F(AclErrorsTest, WordsThatAreNotKnown) {
  EXPECT_EQ(reply_to("ACL"), error(protocol::wrong_arity("acl")));
  EXPECT_EQ(reply_to("ACL NOPE"), error(protocol::unknown_subcommand("NOPE", "ACL")));
  EXPECT_EQ(reply_to("ACL GETUSER"), error(protocol::wrong_arity("acl|getuser")));
  for (const std::string word : {"CAT", "GENPASS", "LOG"}) {
    EXPECT_EQ(reply_to("ACL " + word + " 1 2"), error(protocol::wrong_subcommand(word, "ACL")));
  }
}

TEST_F(AclErrorsTest, UsersThatAreNotThere) {
  EXPECT_EQ(reply_to("ACL GETUSER nope"), kNull);
  EXPECT_EQ(reply_to("ACL DELUSER nope"), integer(0));
  EXPECT_THAT(reply_to("ACL DRYRUN nope GET x"), is_error("ERR", "User 'nope'"));
  EXPECT_THAT(reply_to("ACL DRYRUN default nope"), is_error("ERR", "Command 'nope'"));
  EXPECT_THAT(reply_to("CLIENT KILL USER nope"), is_error("ERR", "user 'nope'"));
}

TEST_F(AclErrorsTest, RulesThatCannotBe) {
  EXPECT_THAT(run({"ACL", "SETUSER", "u", "("}), is_error("ERR", "'('"));
  EXPECT_THAT(run({"ACL", "SETUSER", "a b"}), HasSubstr("-ERR Usernames can't contain spaces"));
  EXPECT_EQ(reply_to("ACL USERS"), array({bulk("default")}));
}

TEST_F(AclErrorsTest, LoginsThatFail) {
  const std::string wrong = error(kWrongPassword);
  EXPECT_EQ(reply_to("AUTH x"), error(kNoPasswordToCheck));
  EXPECT_EQ(reply_to("AUTH nope x"), wrong);
  EXPECT_EQ(reply_to("HELLO 3 AUTH nope x"), wrong);
  EXPECT_EQ(reply_to("ACL WHOAMI"), bulk("default"));
}

TEST_F(AclCommandsTest, TheLogTellsContextAndObject) {
  EXPECT_THAT(run({"AUTH", "alice", "no"}), HasSubstr("WRONGPASS"));
  become_alice({"+get", "+multi", "~k"});
  for (const char* const line : {"GET x", "GET x", "MGET k", "MULTI", "GET y"}) {
    (void)run(net::words_in(line));
  }
  const auto entry = [](int count, const std::string& reason, const std::string& context,
                        const std::string& object) {
    return bulk("count") + integer(count) + bulk("reason") + bulk(reason) + bulk("context") +
           bulk(context) + bulk("object") + bulk(object) + bulk("username") + bulk("alice");
  };
  const std::string log = run_as_other({"ACL", "LOG"});
  size_t at = 0;
  for (const std::string& expected :
       {entry(1, "key", "multi", "y"), entry(1, "command", "toplevel", "mget"),
        entry(2, "key", "toplevel", "x"), entry(1, "auth", "toplevel", "AUTH")}) {
    const size_t found = log.find(expected, at);
    ASSERT_NE(found, std::string::npos) << expected << log;
    at = found;
  }
  // ACL LOG ends with the oldest entry, whose id is 0.
  EXPECT_THAT(log.substr(at), HasSubstr(bulk("entry-id") + integer(0) + bulk("timestamp-created") +
                                        integer(clock_.wall_ms())));
}

// Tests how a change of users affects clients that are connected already.
class LiveRightsTest : public net::ClientsFixture {
 protected:
  LiveRightsTest() { EXPECT_EQ(run(net::words_in("ACL SETUSER u on >p +@all ~* &a &b")), kOk); }
  const std::vector<std::string> login_{"AUTH u p"};
};

TEST_F(LiveRightsTest, AListenerThatLosesItsChannelIsClosed) {
  Remote& loses = connect({"AUTH u p", "SUBSCRIBE a"});
  Remote& keeps = connect({"AUTH u p", "SUBSCRIBE b"});
  EXPECT_EQ(run(net::words_in("ACL SETUSER u resetchannels &b")), kOk);
  EXPECT_EQ(loses.replies(), "(end)");
  EXPECT_EQ(run({"PUBLISH", "b", "m"}), integer(1));
  EXPECT_EQ(keeps.news(), (Texts{"[message, b, m]"}));
}

TEST_F(LiveRightsTest, ForbiddenListenersAreGoneAtOnce) {
  connect({"AUTH u p", "CLIENT SETNAME loses", "PSUBSCRIBE a"});
  connect({"AUTH u p", "CLIENT SETNAME keeps", "SUBSCRIBE b"});
  EXPECT_EQ(run(net::words_in("ACL SETUSER u resetchannels &b")), kOk);
  // The new rights forbid the pattern, so the client `loses` is disconnected. CLIENT LIST omits the
  // client even before its I/O thread has closed the connection.
  EXPECT_THAT(run({"CLIENT", "LIST"}), Not(HasSubstr("name=loses")));
  EXPECT_THAT(run({"CLIENT", "LIST"}), HasSubstr("name=keeps"));
  EXPECT_EQ(run({"ACL", "DELUSER", "u"}), integer(1));
  EXPECT_THAT(run({"CLIENT", "LIST"}), Not(HasSubstr("name=keeps")));
}

TEST_F(LiveRightsTest, ARuleThatIsTakenHoldsForTheNextCommand) {
  Remote& first = connect(login_);
  Remote& second = connect(login_);
  EXPECT_EQ(first.call("GET k"), "nil");
  EXPECT_EQ(run(net::words_in("ACL SETUSER u -get")), kOk);
  for (Remote* const client : {&first, &second}) {
    EXPECT_THAT(client->call("GET k"), is_error("NOPERM", "'get'"));
    EXPECT_EQ(client->call("PING"), "+PONG");
  }
}

TEST_F(LiveRightsTest, ClientsOfADeletedUserAreClosed) {
  Remote& idle = connect(login_);
  Remote& listener = connect({"AUTH u p", "SUBSCRIBE b"});
  Remote& other = connect();
  EXPECT_EQ(run(net::words_in("ACL DELUSER u")), integer(1));
  EXPECT_EQ(idle.replies(), "(end)");
  EXPECT_EQ(listener.replies(), "(end)");
  EXPECT_EQ(other.call("PING"), "+PONG");
}

class AclFileCommandsTest : public net::ClientsFixture {
 protected:
  AclFileCommandsTest() {
    std::string pattern = ::testing::TempDir() + "bloomery_acl_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    path_ = directory_ + "/users.acl";
    write(
        "user alice on nopass ~* &* +@all\n"
        "user bob on nopass +ping +subscribe &*\n");
    const std::array<const char*, 3> argv{"bloomery-server", "--aclfile", path_.c_str()};
    EXPECT_TRUE(config_.load(3, argv.data(), -1));
    EXPECT_TRUE(acl::prepare_users(users_, config_));
  }
  ~AclFileCommandsTest() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& text) const { std::ofstream(path_) << text; }
  std::string text() const {
    std::ostringstream result;
    result << std::ifstream(path_).rdbuf();
    return result.str();
  }

  std::string directory_;
  std::string path_;
};

TEST_F(AclFileCommandsTest, UsersOfTheFileMayLogIn) {
  Remote& alice = connect({"AUTH alice x"});
  Remote& bob = connect({"AUTH bob x"});
  EXPECT_EQ(alice.call("SET k v"), "+OK");
  EXPECT_THAT(bob.call("GET k"), HasSubstr("-NOPERM"));
}

TEST_F(AclFileCommandsTest, SaveWritesAllUsers) {
  EXPECT_EQ(run({"ACL", "SETUSER", "carol", "on"}), kOk);
  EXPECT_EQ(run({"ACL", "SAVE"}), kOk);
  EXPECT_THAT(text(), HasSubstr("user carol on resetchannels -@all\n"));
  EXPECT_THAT(text(), HasSubstr("user alice on nopass ~* &* +@all\n"));
}

TEST_F(AclFileCommandsTest, AFileWithFaultsChangesNothing) {
  Remote& alice = connect({"AUTH alice x"});
  write(text() + "user carol off\nnonsense\n");
  EXPECT_THAT(run({"ACL", "LOAD"}), HasSubstr("no change"));
  EXPECT_EQ(alice.call("PING"), "+PONG");
  EXPECT_EQ(run({"ACL", "GETUSER", "carol"}), kNull);
}

TEST_F(AclFileCommandsTest, LoadClosesClientsOfUsersThatAreGone) {
  Remote& alice = connect({"AUTH alice x"});
  Remote& bob = connect({"AUTH bob x"});
  Remote& passwordless = connect();
  EXPECT_EQ(run({"ACL", "SAVE"}), kOk);
  std::string saved = text();
  const size_t line = saved.find("user bob");
  saved.erase(line, saved.find('\n', line) + 1 - line);
  write(saved);
  EXPECT_EQ(run({"ACL", "LOAD"}), kOk);
  EXPECT_EQ(bob.replies(), "(end)");
  EXPECT_EQ(alice.call("ACL WHOAMI"), "alice");
  EXPECT_EQ(passwordless.call("PING"), "+PONG");
}

}  // namespace
}  // namespace server
