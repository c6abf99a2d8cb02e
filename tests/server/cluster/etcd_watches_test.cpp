// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_watches.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/base64.h"
#include "tests/server/cluster/scripted_etcd.h"

namespace server::cluster {
namespace {

std::string created(uint64_t revision) {
  return fmt::format("{{\"result\":{{\"header\":{{\"revision\":\"{}\"}},\"created\":true}}}}\n",
                     revision);
}

std::string changed(std::string_view key, uint64_t revision, uint64_t header_revision) {
  return fmt::format(
      "{{\"result\":{{\"header\":{{\"revision\":\"{}\"}},\"events\":[{{\"kv\":{{\"key\":\"{}\","
      "\"mod_revision\":\"{}\"}}}}]}}}}\n",
      header_revision, core::encode_base64(key), revision);
}

class EtcdWatchesTest : public testing::Test {
 protected:
  ~EtcdWatchesTest() override {
    if (watches_) watches_->stop();
    if (calls_) calls_->stop();
  }

  void watch(const std::vector<std::string>& urls, uint64_t start_revision = 0) {
    std::vector<EtcdEndpoint> endpoints;
    for (const std::string& url : urls) endpoints.push_back(*parse_etcd_endpoint(url));
    calls_ = std::make_shared<EtcdCalls>(io_, EtcdOptions{.user = user_, .call_limit = limit_},
                                         endpoints, nullptr);
    watches_ = std::make_shared<EtcdWatches>(calls_);
    calls_->on_move([this] { watches_->move(); });
    number_ = watches_->start({"a", "b", start_revision}, [this](EtcdWatchNews news) {
      news_.push_back(std::move(news));
      if (cancels_at_ == news_.size()) watches_->cancel(number_);
    });
  }

  bool wait_for_news(size_t count) {
    return run_until(io_, [&] { return news_.size() >= count; });
  }
  const EtcdChanges& changes(size_t index) { return std::get<EtcdChanges>(news_[index]); }
  EtcdCode end_code() { return std::get<EtcdError>(news_.back()).code; }

  boost::asio::io_context io_;
  std::shared_ptr<EtcdCalls> calls_;
  std::shared_ptr<EtcdWatches> watches_;
  std::string user_;
  // Timeout of a call; only tests of a silent member shorten it.
  std::chrono::milliseconds limit_{10'000};
  uint64_t number_ = 0;
  size_t cancels_at_ = 0;
  std::vector<EtcdWatchNews> news_;
};

TEST_F(EtcdWatchesTest, TellsItsBeginAndChanges) {
  ScriptedEtcd etcd(io_, [](const std::string&) { return http_stream(created(4)); });
  watch({etcd.url()});
  ASSERT_TRUE(wait_for_news(1));
  EXPECT_TRUE(changes(0).events.empty());
  EXPECT_EQ(changes(0).revision, 4U);
  etcd.send(http_chunk(changed("a", 6, 9)));
  ASSERT_TRUE(wait_for_news(2));
  EXPECT_EQ(changes(1).events.front().kv.key, "a");
  EXPECT_EQ(changes(1).revision, 6U);
}

TEST_F(EtcdWatchesTest, ContinuesAfterTheLastReportedEvent) {
  ScriptedEtcd etcd(io_, [](const std::string&) { return http_stream(created(20)); });
  watch({etcd.url()}, 5);
  ASSERT_TRUE(wait_for_news(1));
  EXPECT_EQ(changes(0).revision, 4U);
  etcd.send(http_chunk(changed("a", 7, 20)));
  ASSERT_TRUE(wait_for_news(2));
  etcd.hang_up();
  ASSERT_TRUE(wait_for_news(3));
  EXPECT_NE(etcd.requests().back().find(R"("start_revision":"8")"), std::string::npos);
  // On the new connection, etcd sends the event of revision 7 again. The client must not report
  // this event twice.
  etcd.send(http_chunk(changed("a", 7, 20) + changed("b", 8, 20)));
  ASSERT_TRUE(wait_for_news(4));
  EXPECT_EQ(changes(3).events.size(), 1U);
  EXPECT_EQ(changes(3).revision, 8U);
}

TEST_F(EtcdWatchesTest, NotificationOfProgressSparesOldChanges) {
  ScriptedEtcd etcd(io_, [](const std::string&) { return http_stream(created(4)); });
  watch({etcd.url()}, 5);
  ASSERT_TRUE(wait_for_news(1));
  etcd.send(http_chunk("{\"result\":{\"header\":{\"revision\":\"50\"}}}\n"));
  etcd.send(http_chunk("nonsense\n"));
  ASSERT_TRUE(wait_for_news(2));
  EXPECT_NE(etcd.requests().back().find(R"("start_revision":"51")"), std::string::npos);
}

TEST_F(EtcdWatchesTest, FollowsTheCallsToAnotherMember) {
  ScriptedEtcd first(io_, [](const std::string&) { return http_stream(created(4)); });
  ScriptedEtcd second(io_, [](const std::string&) { return http_stream(created(6)); });
  watch({first.url(), second.url()});
  ASSERT_TRUE(wait_for_news(1));
  calls_->move_on(0);
  ASSERT_TRUE(wait_for_news(2));
  ASSERT_EQ(second.requests().size(), 1U);
  EXPECT_NE(second.requests().back().find(R"("start_revision":"5")"), std::string::npos);
}

TEST_F(EtcdWatchesTest, LeavesAMemberThatDoesNotBegin) {
  limit_ = std::chrono::milliseconds(200);
  ScriptedEtcd first(io_, [](const std::string&) { return std::string(); });
  ScriptedEtcd second(io_, [](const std::string&) { return http_stream(created(6)); });
  watch({first.url(), second.url()});
  EXPECT_TRUE(wait_for_news(1));
}

TEST_F(EtcdWatchesTest, EndsWithCompaction) {
  ScriptedEtcd etcd(io_, [](const std::string&) {
    return http_stream(created(200) +
                       "{\"result\":{\"canceled\":true,\"compact_revision\":\"111\"}}\n");
  });
  watch({etcd.url()}, 2);
  ASSERT_TRUE(wait_for_news(2));
  EXPECT_EQ(end_code(), EtcdCode::kOutOfRange);
}

TEST_F(EtcdWatchesTest, EndsWithAMessageThatIsTooLarge) {
  ScriptedEtcd etcd(io_, [](const std::string&) {
    return http_stream(created(4)) + http_chunk(std::string(kEtcdReplyBytesMax + 100'000, 'x'));
  });
  watch({etcd.url()}, 2);
  ASSERT_TRUE(wait_for_news(2));
  EXPECT_EQ(end_code(), EtcdCode::kOutOfRange);
}

TEST_F(EtcdWatchesTest, EndsWhenItIsForbidden) {
  ScriptedEtcd etcd(io_, [](const std::string&) {
    return http_stream(
        "{\"result\":{\"watch_id\":\"-1\",\"created\":true,\"canceled\":true,"
        "\"cancel_reason\":\"rpc error: etcdserver: permission denied\"}}\n");
  });
  watch({etcd.url()});
  ASSERT_TRUE(wait_for_news(1));
  EXPECT_EQ(end_code(), EtcdCode::kPermissionDenied);
  EXPECT_EQ(etcd.requests().size(), 1U);
}

TEST_F(EtcdWatchesTest, GetsANewTokenOnce) {
  ScriptedEtcd etcd(io_, [](const std::string& request) {
    if (request.starts_with("POST /v3/auth/authenticate")) return http_reply(R"({"token":"t"})");
    return http_stream(
        "{\"result\":{\"created\":true,\"canceled\":true,\"cancel_reason\":"
        "\"rpc error: code = Unauthenticated desc = etcdserver: invalid auth token\"}}\n");
  });
  user_ = "u";
  watch({etcd.url()});
  ASSERT_TRUE(wait_for_news(1));
  EXPECT_EQ(end_code(), EtcdCode::kUnauthenticated);
  EXPECT_EQ(etcd.requests().size(), 4U);  // two token requests and two watch requests
}

TEST_F(EtcdWatchesTest, HandlerMayCancel) {
  ScriptedEtcd etcd(io_, [](const std::string&) {
    return http_stream(created(4) + changed("a", 5, 5) + changed("a", 6, 6));
  });
  cancels_at_ = 2;
  watch({etcd.url()});
  ASSERT_TRUE(wait_for_news(2));
  io_.restart();
  io_.run_for(std::chrono::milliseconds(100));
  EXPECT_EQ(news_.size(), 2U);
}

}  // namespace
}  // namespace server::cluster
