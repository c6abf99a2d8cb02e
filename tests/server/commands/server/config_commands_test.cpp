// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <string>

#include "server/base/config/config.h"
#include "server/base/process/availability.h"
#include "server/base/process/server_state.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ConfigRepliesTest : public CommandTest {
 protected:
  std::string get(const std::string& name) {
    const std::string reply = run({"CONFIG", "GET", name});
    EXPECT_THAT(reply, StartsWith("*2\r\n" + bulk(name)));
    return reply.substr(4 + bulk(name).size());
  }
};

TEST_F(ConfigRepliesTest, GetAnswersAMapWithResp3) {
  EXPECT_EQ(run({"CONFIG", "GET", "timeout"}), array({bulk("timeout"), bulk("0")}));
  run({"HELLO", "3"});
  EXPECT_EQ(run({"CONFIG", "GET", "timeout"}), "%1\r\n" + bulk("timeout") + bulk("0"));
}

TEST_F(ConfigRepliesTest, GetTakesPatternsAndNamesEachOptionOnce) {
  EXPECT_EQ(run({"CONFIG", "GET", "maxclient?", "MAXCLIENTS", "nosuch"}),
            array({bulk("maxclients"), bulk("10000")}));
  EXPECT_EQ(run({"CONFIG", "GET", "MAXCLIENTS", "maxclient?"}),
            array({bulk("MAXCLIENTS"), bulk("10000")}))
      << "as it was asked for first";
  EXPECT_EQ(run({"CONFIG", "GET", "nosuch*"}), "*0\r\n");
}

TEST_F(ConfigRepliesTest, SetTakesSeveralOptions) {
  EXPECT_EQ(run({"CONFIG", "SET", "timeout", "7", "hz", "50"}), kOk);
  EXPECT_EQ(get("timeout"), bulk("7"));
  EXPECT_EQ(get("hz"), bulk("50"));
}

TEST_F(ConfigRepliesTest, SetKeepsNoWarnings) {
  EXPECT_EQ(run({"CONFIG", "SET", "activedefrag", "yes"}), kOk);
  EXPECT_TRUE(config_.take_warnings().empty());
}

TEST_F(ConfigRepliesTest, SetChangesAllOptionsOrNone) {
  EXPECT_THAT(run({"CONFIG", "SET", "timeout", "7", "hz", "many"}),
              StartsWith("-" + config_set_error("hz", "")));
  EXPECT_EQ(get("timeout"), bulk("0"));
}

TEST_F(ConfigRepliesTest, AnOptionMayBeNamedOnce) {
  EXPECT_THAT(run({"CONFIG", "SET", "timeout", "7", "TIMEOUT", "8"}),
              HasSubstr("duplicate parameter"));
  EXPECT_EQ(get("timeout"), bulk("0"));
}

TEST_F(ConfigRepliesTest, WordsMustComeInPairs) {
  EXPECT_THAT(run({"CONFIG", "SET", "timeout"}), StartsWith("-ERR wrong number of arguments"));
  EXPECT_EQ(run({"CONFIG", "SET", "timeout", "7", "hz"}), error(kSyntaxError));
}

TEST_F(ConfigRepliesTest, UnknownOptionsAreRefused) {
  EXPECT_THAT(run({"CONFIG", "SET", "nosuch", "1"}),
              StartsWith("-" + unknown_option_error("nosuch")));
}

TEST_F(ConfigRepliesTest, OptionsOfTheStartStayWhatTheyAre) {
  EXPECT_THAT(run({"CONFIG", "SET", "databases", "3"}), HasSubstr(kImmutableOption));
  EXPECT_EQ(get("databases"), bulk("16"));
}

TEST_F(ConfigRepliesTest, ProtectedOptionsNeedTheirPermission) {
  EXPECT_THAT(run({"CONFIG", "SET", "dir", "/tmp"}), HasSubstr(kProtectedOption));
}

TEST_F(ConfigRepliesTest, DirCannotBeSetWhileDataAreLoaded) {
  state_.availability.begin(Availability::kLoading);
  EXPECT_EQ(run({"CONFIG", "SET", "timeout", "7", "dir", "/tmp"}), error(kServerIsLoading));
  EXPECT_EQ(run({"CONFIG", "SET", "hz", "50"}), kOk);
  state_.availability.end(Availability::kLoading);
  EXPECT_EQ(get("timeout"), bulk("0"));
}

TEST_F(ConfigRepliesTest, LocalClientsMayBePermitted) {
  config_.replace(OptionId::kEnableProtectedConfigs, "local");
  client_->session->client->address = "192.0.2.1:5";
  EXPECT_THAT(run({"CONFIG", "SET", "dbfilename", "x.rdb"}), HasSubstr(kProtectedOption));
  for (const char* const address : {"127.0.0.1:5", "127.9.9.9:5", "[::1]:5"}) {
    client_->session->client->address = address;
    EXPECT_EQ(run({"CONFIG", "SET", "dbfilename", "x.rdb"}), kOk) << address;
  }
  client_->session->client->address = "/run/socket:0";
  client_->session->client->socket.is_unix = true;
  EXPECT_EQ(run({"CONFIG", "SET", "dbfilename", "y.rdb"}), kOk);
}

TEST_F(ConfigRepliesTest, ATransactionMaySetAndGet) {
  run({"MULTI"});
  run({"CONFIG", "SET", "timeout", "9"});
  run({"CONFIG", "GET", "timeout"});
  EXPECT_EQ(run({"EXEC"}), array({kOk, array({bulk("timeout"), bulk("9")})}));
}

}  // namespace
}  // namespace server
