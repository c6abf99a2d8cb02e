// SPDX-License-Identifier: MIT
#include "server/cluster_node/presence.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "server/cluster/permit_clock.h"
#include "tests/server/cluster/scripted_etcd.h"
#include "tests/support/captured_log.h"

namespace server::cluster {
namespace {

class PresenceTest : public ::testing::Test {
 protected:
  std::string answer(const std::string& request) {
    if (request.starts_with("POST /v3/lease/grant")) {
      ++grants_;
      return http_reply(R"({"ID":"7","TTL":"2"})");
    }
    if (request.starts_with("POST /v3/lease/keepalive")) return http_reply(kept_);
    if (request.starts_with("POST /v3/lease/revoke")) {
      ++revocations_;
      return http_reply(R"({"header":{"revision":"5"}})");
    }
    ++tries_;
    return http_reply(taken_);
  }
  bool wait(const std::function<bool()>& done) { return run_until(io_, done); }

  boost::asio::io_context io_;
  int grants_ = 0;
  int tries_ = 0;
  int revocations_ = 0;
  bool may_appear_ = true;
  std::string kept_ = R"({"result":{"ID":"7","TTL":"2"}})";
  std::string taken_ =
      R"({"header":{"revision":"4"},"succeeded":true,"responses":[{"response_put":{}}]})";
  ScriptedEtcd etcd_{io_, [this](const std::string& request) { return answer(request); }};
  std::unique_ptr<EtcdClient> client_ =
      *EtcdClient::make(io_, {.endpoints = {etcd_.url()}, .call_limit = std::chrono::seconds(10)});
  Presence presence_{io_, *client_, {"alive/a", "{}", std::chrono::milliseconds(500)}, [this] {
                       return may_appear_;
                     }};
};

TEST_F(PresenceTest, KeyIsCreatedUnderALease) {
  presence_.start();
  EXPECT_TRUE(wait([&] { return presence_.mod_revision() == 4; }));
  EXPECT_TRUE(presence_.etcd_answers());
  EXPECT_NE(etcd_.requests()[1].find("create_revision"), std::string::npos);
  EXPECT_NE(etcd_.requests()[1].find(R"("lease":"7")"), std::string::npos);
}

TEST_F(PresenceTest, LostLeaseIsReplaced) {
  presence_.start();
  ASSERT_TRUE(wait([&] { return presence_.mod_revision() == 4; }));
  kept_ = R"({"result":{"ID":"7"}})";
  EXPECT_TRUE(wait([&] { return presence_.mod_revision() == 0; }));
  kept_ = R"({"result":{"ID":"7","TTL":"2"}})";
  EXPECT_TRUE(wait([&] { return grants_ == 2 && presence_.mod_revision() == 4; }));
}

TEST_F(PresenceTest, MissingKeyIsCreatedAgain) {
  presence_.start();
  ASSERT_TRUE(wait([&] { return presence_.mod_revision() == 4; }));
  EXPECT_EQ(tries_, 1);
  presence_.key_is_missing();
  EXPECT_TRUE(wait([&] { return tries_ == 2 && presence_.mod_revision() == 4; }));
}

TEST_F(PresenceTest, KeyOfAnotherProcessIsLeftAlone) {
  // The answer contains the key "alive/a" (in Base64) with lease 9, which another process owns.
  taken_ = R"({"header":{"revision":"4"},"responses":[{"response_range":{"count":"1","kvs":[)"
           R"({"key":"YWxpdmUvYQ==","mod_revision":"3","lease":"9"}]}}]})";
  presence_.start();
  EXPECT_TRUE(wait([&] { return tries_ == 3; }));
  EXPECT_EQ(presence_.mod_revision(), 0U);
  EXPECT_EQ(presence_.held_until_us(), 0);
}

TEST_F(PresenceTest, LogsALiveTwinOnceAMinute) {
  taken_ = R"({"header":{"revision":"4"},"responses":[{"response_range":{"count":"1","kvs":[)"
           R"({"key":"YWxpdmUvYQ==","mod_revision":"3","lease":"9"}]}}]})";
  const CapturedLog log;
  Presence second(io_, *client_, {"alive/a", "{}", std::chrono::milliseconds(50)},
                  [] { return true; });
  second.start();
  ASSERT_TRUE(wait([&] { return tries_ == 1 && log.count("is there already") == 1; }));
  EXPECT_EQ(log.count("is alive"), 0U) << "it may have died just now";
  EXPECT_TRUE(wait([&] { return tries_ == 5; }));
  EXPECT_EQ(log.count("is there already"), 1U);
  EXPECT_EQ(log.count("another process with this node's id is alive"), 1U);
}

TEST_F(PresenceTest, KeyIsHeldForAsLongAsItsLeaseWasAskedFor) {
  constexpr int64_t kTimeoutUs = 500'000;
  const int64_t begun_us = permit_clock_us();
  EXPECT_EQ(presence_.held_until_us(), 0);
  presence_.start();
  ASSERT_TRUE(wait([&] { return presence_.mod_revision() == 4; }));
  const int64_t first_us = presence_.held_until_us();
  EXPECT_GE(first_us, begun_us + kTimeoutUs);
  EXPECT_LE(first_us, permit_clock_us() + kTimeoutUs);
  EXPECT_TRUE(wait([&] { return presence_.held_until_us() > first_us; })) << "kept alive";
  presence_.key_is_missing();
  EXPECT_EQ(presence_.held_until_us(), 0);
}

TEST_F(PresenceTest, OwnKeyOfAnUnknownTryIsRecognized) {
  taken_ = R"({"header":{"revision":"4"},"responses":[{"response_range":{"count":"1","kvs":[)"
           R"({"key":"YWxpdmUvYQ==","mod_revision":"3","lease":"7"}]}}]})";
  presence_.start();
  EXPECT_TRUE(wait([&] { return presence_.mod_revision() == 3; }));
}

TEST_F(PresenceTest, MayHaveToStayAway) {
  may_appear_ = false;
  presence_.start();
  ASSERT_TRUE(wait([&] { return etcd_.requests().size() >= 3; }));
  EXPECT_EQ(tries_, 0);
  may_appear_ = true;
  EXPECT_TRUE(wait([&] { return presence_.mod_revision() == 4; }));
}

TEST_F(PresenceTest, LeavingGivesTheLeaseBack) {
  bool has_left = false;
  presence_.start();
  ASSERT_TRUE(wait([&] { return presence_.mod_revision() == 4; }));
  presence_.leave([&] { has_left = true; });
  EXPECT_TRUE(wait([&] { return has_left; }));
  EXPECT_EQ(revocations_, 1);
}

}  // namespace
}  // namespace server::cluster
