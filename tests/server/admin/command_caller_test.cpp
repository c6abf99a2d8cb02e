// SPDX-License-Identifier: MIT
#include "server/admin/command_caller.h"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/base/metrics/statistics.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/view.h"
#include "server/session/acl/users.h"
#include "tests/support/command_test.h"

namespace server::admin {
namespace {

using ::testing::StartsWith;

class CommandCallerTest : public CommandTest {
 protected:
  protocol::Reply call(const std::vector<std::string_view>& words, const std::string& user,
                       int database = 0) {
    return caller_.call({users_.find(user), "127.0.0.1:5", database}, words);
  }

  CommandCaller caller_{services_};
};

TEST_F(CommandCallerTest, ReadsInTheDatabaseThatIsAskedFor) {
  run({"SELECT", "2"});
  run({"SET", "a", "1"});
  EXPECT_EQ(call({"GET", "a"}, "default", 2).text, "1");
  EXPECT_EQ(call({"GET", "a"}, "default", 0).type, protocol::Reply::Type::kNull);
}

// The view that an I/O thread reads must not change while the admin port's thread reads.
TEST_F(CommandCallerTest, HasAViewOfTheClusterOfItsOwn) {
  const auto publish = [&] { cluster_.publish(cluster::View::emulated(std::string(40, 'a'))); };
  publish();
  cluster_.set_service(cluster::Service::kUp);
  std::atomic<bool> ends = false;
  std::thread admin([&] {
    while (!ends) EXPECT_EQ(call({"DBSIZE"}, "default").integer, 0);
  });
  for (int i = 0; i < 1000; ++i) {
    publish();
    ASSERT_EQ(run({"DBSIZE"}), integer(0));
  }
  ends = true;
  admin.join();
}

class RenamedCommandCallerTest : public CommandTest {
 protected:
  RenamedCommandCallerTest() : CommandTest({{"get", "fetch"}, {"slowlog", ""}}) {}

  CommandCaller caller_{services_};
};

TEST_F(RenamedCommandCallerTest, OriginalNamesAreUsed) {
  run({"SET", "a", "1"});
  const CommandCaller::Caller caller{users_.find("default"), "127.0.0.1:5", 0};
  EXPECT_EQ(caller_.call(caller, std::vector<std::string_view>{"GET", "a"}).text, "1");
  EXPECT_EQ(caller_.call(caller, std::vector<std::string_view>{"SLOWLOG", "LEN"}).integer, 0)
      << "the call of GET took no time";
  EXPECT_TRUE(Access(services_).allows(*caller.user, std::array<std::string_view, 2>{"GET", "a"}));
}

TEST_F(CommandCallerTest, NothingIsWritten) {
  EXPECT_TRUE(call({"SET", "a", "1"}, "default").is_error());
  EXPECT_TRUE(call({"NOSUCH"}, "default").is_error());
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
}

TEST_F(CommandCallerTest, RulesOfTheUserHold) {
  run({"SET", "mine:a", "1"});
  run({"ACL", "SETUSER", "eve", "on", ">pw", "+get", "~mine:*"});
  EXPECT_EQ(call({"GET", "mine:a"}, "eve").text, "1");
  EXPECT_THAT(call({"GET", "other"}, "eve").text, StartsWith("NOPERM"));
  EXPECT_THAT(call({"STRLEN", "mine:a"}, "eve").text, StartsWith("NOPERM"));
}

TEST_F(CommandCallerTest, CallsAreNotCounted) {
  call({"GET", "a"}, "default");
  EXPECT_EQ(statistics_.total(&ThreadStatistics::commands_processed), 0U);
}

}  // namespace
}  // namespace server::admin
