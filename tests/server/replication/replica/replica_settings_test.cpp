// SPDX-License-Identifier: MIT
//
// A replica has the same data as its leader, whatever its own settings are.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "server/base/config/config.h"
#include "server/replication/replica_controller.h"
#include "server/replication/stream/backlog.h"
#include "server/replication/stream/replication.h"
#include "tests/support/replica_fixture.h"

namespace server {
namespace {

// A server that acts as the leader. The test reads the leader's stream from the backlog of this
// server.
class LeadingNode final : public CommandTest {
 public:
  LeadingNode() {
    config_.replace(OptionId::kEnableDebugCommand, "yes");
    replication_.begin_backlog();
    run({"CONFIG", "SET", "repl-backlog-size", "64mb"});
  }
  void TestBody() override {}

  std::string call(const std::vector<std::string>& words) { return run(words); }
  std::string stream() const {
    std::string bytes(replication_.offset(), '\0');
    size_t got = 0;
    while (got < bytes.size()) {
      const auto count = replication_.backlog().read(got, std::span(bytes).subspan(got));
      if (!count || *count == 0) break;
      got += *count;
    }
    EXPECT_EQ(got, bytes.size());
    return bytes;
  }
};

class ReplicaSettingsTest : public ReplicaFixture {
 protected:
  ReplicaSettingsTest() { config_.replace(OptionId::kEnableDebugCommand, "yes"); }

  void set(const std::string& option, const std::string& value) {
    ASSERT_EQ(run({"CONFIG", "SET", option, value}), kOk) << option;
  }
  // Sends the leader's new commands to the replica. Expects that both servers then have the same
  // keys and values.
  void expect_the_leaders_data() {
    const std::string stream = leading_.stream();
    begin_stream(own_snapshot());
    played_.say(stream);
    await_applied(stream.size());
    EXPECT_EQ(run({"DEBUG", "DIGEST"}), leading_.call({"DEBUG", "DIGEST"}));
    EXPECT_EQ(run({"DBSIZE"}), leading_.call({"DBSIZE"}));
    EXPECT_EQ(replica_controller_.figures().stream.failed_commands, 0U);
  }

  LeadingNode leading_;
};

TEST_F(ReplicaSettingsTest, ThoseForNewFiltersAreTheLeaders) {
  leading_.call({"CONFIG", "SET", "bf-layout", "redisbloom"});
  set("bf-error-rate", "0.2");
  set("bf-initial-size", "7");
  set("bf-expansion-factor", "5");
  set("bf-tightening-ratio", "0.9");
  set("bf-layout", "valkey-bloom");
  for (int i = 0; i < 3000; ++i) leading_.call({"BF.ADD", "made", std::to_string(i)});
  leading_.call({"BF.INSERT", "inserted", "CAPACITY", "10", "ITEMS", "a", "b"});
  leading_.call({"BF.RESERVE", "reserved", "0.01", "2000000", "LAYOUT", "native"});
  expect_the_leaders_data();
}

TEST_F(ReplicaSettingsTest, LimitsOfMemoryAreForClients) {
  set("maxmemory", "1");
  set("bf.bloom-memory-usage-limit", "1000");
  leading_.call({"BF.RESERVE", "reserved", "0.01", "2000000"});
  leading_.call({"SETRANGE", "text", "5", "x"});
  leading_.call({"BF.ADD", "reserved", "item"});
  expect_the_leaders_data();
}

TEST_F(ReplicaSettingsTest, LimitsOfLengthAreForClients) {
  set("proto-max-bulk-len", "1mb");
  leading_.call({"SET", "big", std::string(2 << 20, 'x')});
  leading_.call({"SETBIT", "bits", std::to_string(16 << 20), "1"});
  leading_.call({"COPY", "big", "copy"});
  leading_.call({"MULTI"});
  leading_.call({"APPEND", "big", std::string(1 << 20, 'y')});
  leading_.call({"EXEC"});
  expect_the_leaders_data();
}

TEST_F(ReplicaSettingsTest, ARestoredFilterIsTheLeaders) {
  set("bf-layout", "valkey-bloom");
  set("bf.bloom-memory-usage-limit", "1000");
  leading_.call({"BF.RESERVE", "reserved", "0.01", "200000"});
  const std::string dumped = leading_.call({"DUMP", "reserved"});
  const size_t begin = dumped.find("\r\n") + 2;
  leading_.call({"RESTORE", "restored", "0", dumped.substr(begin, dumped.size() - begin - 2)});
  EXPECT_EQ(leading_.call({"EXISTS", "restored"}), integer(1));
  expect_the_leaders_data();
}

}  // namespace
}  // namespace server
