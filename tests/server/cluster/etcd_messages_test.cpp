// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_messages.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base64.h"

namespace server::cluster {
namespace {

TEST(EtcdMessagesTest, RangeHasKeyAndWhatDiffersFromTheDefault) {
  EXPECT_EQ(etcd_range_json({.key = "a"}), R"({"key":"YQ=="})");
  EXPECT_EQ(etcd_range_json({"a", "b"}), R"({"key":"YQ==","range_end":"Yg=="})");
}

TEST(EtcdMessagesTest, PrefixEndsBehindItsLastKey) {
  EXPECT_EQ(EtcdRange::prefix("x/").range_end, "x0");
  EXPECT_EQ(EtcdRange::prefix("a\xff").range_end, "b");
  EXPECT_EQ(EtcdRange::prefix("\xff").range_end, std::string(1, '\0'));
}

TEST(EtcdMessagesTest, PutNamesItsLease) {
  const EtcdTxn txn{{}, {EtcdPut{"a", "b", 0}, EtcdPut{"a", "b", 2324035540610295048}}};
  EXPECT_EQ(etcd_txn_json(txn),
            R"({"compare":[],"success":[{"request_put":{"key":"YQ==","value":"Yg=="}},)"
            R"({"request_put":{"key":"YQ==","value":"Yg==","lease":"2324035540610295048"}}],)"
            R"("failure":[]})");
}

TEST(EtcdMessagesTest, TxnComparesRevisions) {
  const EtcdTxn txn{{EtcdCompare::unchanged("a", 10), EtcdCompare::absent("b")},
                    {EtcdPut{"a", "v"}},
                    {EtcdRange{"a"}}};
  EXPECT_EQ(etcd_txn_json(txn),
            R"({"compare":[{"key":"YQ==","target":"MOD","result":"EQUAL","mod_revision":"10"},)"
            R"({"key":"Yg==","target":"CREATE","result":"EQUAL","create_revision":"0"}],)"
            R"("success":[{"request_put":{"key":"YQ==","value":"dg=="}}],)"
            R"("failure":[{"request_range":{"key":"YQ=="}}]})");
}

TEST(EtcdMessagesTest, LeasesAreText) {
  EXPECT_EQ(etcd_grant_json(5), R"({"TTL":"5"})");
  EXPECT_EQ(etcd_lease_json(9223372036854775807), R"({"ID":"9223372036854775807"})");
}

TEST(EtcdMessagesTest, WatchAsksForProgress) {
  EXPECT_EQ(etcd_watch_json({"a", "b", 12}),
            R"({"create_request":{"key":"YQ==","range_end":"Yg==","start_revision":"12",)"
            R"("progress_notify":true}})");
}

TEST(EtcdMessagesTest, PasswordIsEscaped) {
  EXPECT_EQ(etcd_authenticate_json("u", "a\"\n"), R"({"name":"u","password":"a\"\n"})");
}

TEST(EtcdMessagesTest, RangeReplyHasKeysAndTheirRevisions) {
  const auto reply = parse_etcd_range(
      R"({"header":{"cluster_id":"14841639068965178418","member_id":"10276657743932975437",)"
      R"("revision":"10","raft_term":"2"},"kvs":[{"key":"YQ==","create_revision":"2",)"
      R"("mod_revision":"9","version":"3","value":"dg==","lease":"77"}],"count":"1"})");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->revision, 10U);
  ASSERT_NE(reply->find("a"), nullptr);
  EXPECT_EQ(*reply->find("a"), (EtcdKeyValue{"a", "v", 9, 77}));
  EXPECT_EQ(reply->find("b"), nullptr);
}

TEST(EtcdMessagesTest, AbsentMembersAreZero) {
  const auto range = parse_etcd_range(R"({"header":{"revision":"3"}})");
  ASSERT_TRUE(range);
  EXPECT_TRUE(range->kvs.empty());
  const auto txn = parse_etcd_txn(R"({"header":{"revision":"3"},"responses":null})");
  ASSERT_TRUE(txn);
  EXPECT_FALSE(txn->succeeded);
}

TEST(EtcdMessagesTest, TxnReplyHasOneResponseForEachOperation) {
  const auto reply = parse_etcd_txn(
      R"({"header":{"revision":"12"},"succeeded":true,"responses":[)"
      R"({"response_put":{"header":{"revision":"12"}}},)"
      R"({"response_range":{"header":{"revision":"12"},"kvs":[{"key":"YQ=="}],"count":"1"}}]})");
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->succeeded);
  EXPECT_EQ(reply->revision, 12U);
  ASSERT_EQ(reply->responses.size(), 2U);
  EXPECT_EQ(reply->responses[0].revision, 12U);
  EXPECT_TRUE(reply->responses[0].kvs.empty());
  EXPECT_NE(reply->responses[1].find("a"), nullptr);
}

TEST(EtcdMessagesTest, KeepAliveOfALeaseThatIsGoneHasNoTime) {
  const auto alive = parse_etcd_keep_alive(R"({"result":{"ID":"7","TTL":"3"}})");
  ASSERT_TRUE(alive);
  EXPECT_EQ(alive->ttl_s, 3U);
  const auto gone = parse_etcd_keep_alive("{\"result\":{\"ID\":\"7\"}}\n");
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->lease, 7U);
  EXPECT_EQ(gone->ttl_s, 0U);
  EXPECT_FALSE(parse_etcd_keep_alive("{}"));
}

TEST(EtcdMessagesTest, GrantHasALease) {
  const auto granted = parse_etcd_grant(R"({"ID":"2324035540610295048","TTL":"5"})");
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->lease, 2324035540610295048U);
  EXPECT_EQ(granted->ttl_s, 5U);
  EXPECT_FALSE(parse_etcd_grant(R"({"TTL":"5"})"));
}

TEST(EtcdMessagesTest, TokenFitsAHeaderLine) {
  const auto token = parse_etcd_token(R"({"header":{},"token":"abc.1"})");
  ASSERT_TRUE(token);
  EXPECT_EQ(*token, "abc.1");
  EXPECT_FALSE(parse_etcd_token(R"({"token":"a\r\nX: y"})"));
  EXPECT_FALSE(parse_etcd_token(R"({})"));
}

EtcdWatchReply watched(std::string_view json) {
  const auto message = parse_etcd_watch(json);
  if (!message || !std::holds_alternative<EtcdWatchReply>(*message)) {
    ADD_FAILURE() << json;
    return {};
  }
  return std::get<EtcdWatchReply>(*message);
}

TEST(EtcdMessagesTest, WatchTellsPutsAndDeletes) {
  EXPECT_TRUE(watched(R"({"result":{"header":{"revision":"4"},"created":true}})").created);
  const EtcdWatchReply reply =
      watched(R"({"result":{"header":{"revision":"6"},"events":[{"kv":{"key":"YQ==",)"
              R"("create_revision":"5","mod_revision":"5","value":"dg=="}},)"
              R"({"type":"DELETE","kv":{"key":"YQ==","mod_revision":"6"}}]}})");
  EXPECT_EQ(reply.revision, 6U);
  const std::vector<EtcdEvent> expected{{false, {"a", "v", 5, 0}}, {true, {"a", "", 6, 0}}};
  EXPECT_EQ(reply.events, expected);
}

TEST(EtcdMessagesTest, WatchIsCanceledByCompaction) {
  const EtcdWatchReply reply = watched(R"({"result":{"header":{},"watch_id":"-1","canceled":true,)"
                                       R"("compact_revision":"111","cancel_reason":"a\nb"}})");
  EXPECT_TRUE(reply.canceled);
  EXPECT_EQ(reply.compact_revision, 111U);
  EXPECT_EQ(reply.cancel_reason, "a\\nb");
}

TEST(EtcdMessagesTest, WatchEndsWithAnError) {
  const auto message = parse_etcd_watch(
      R"({"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}})");
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<EtcdError>(*message),
            (EtcdError{EtcdCode::kUnavailable, "etcdserver: no leader"}));
}

TEST(EtcdMessagesTest, ErrorsHaveCodeAndMessage) {
  EXPECT_EQ(parse_etcd_error(404, R"({"error":"x","message":"x","code":5})"),
            (EtcdError{EtcdCode::kNotFound, "x"}));
  EXPECT_EQ(parse_etcd_error(503, R"({"error":{"grpc_code":14,"message":"no leader"}})"),
            (EtcdError{EtcdCode::kUnavailable, "no leader"}));
  EXPECT_EQ(parse_etcd_error(502, "<html>"),
            (EtcdError{EtcdCode::kUnavailable, "HTTP status 502"}));
  EXPECT_EQ(parse_etcd_error(401, "").code, EtcdCode::kUnauthenticated);
  EXPECT_EQ(parse_etcd_error(404, "404 page not found").code, EtcdCode::kUnknown);
  EXPECT_EQ(parse_etcd_error(500, R"({"code":99})").code, EtcdCode::kUnknown);
}

TEST(EtcdMessagesTest, OnlySomeErrorsExcludeTheChange) {
  for (const EtcdCode code : {EtcdCode::kInvalidArgument, EtcdCode::kNotFound,
                              EtcdCode::kPermissionDenied, EtcdCode::kUnauthenticated}) {
    EXPECT_TRUE(is_refusal(code));
  }
  for (const EtcdCode code : {EtcdCode::kOk, EtcdCode::kUnknown, EtcdCode::kDeadlineExceeded,
                              EtcdCode::kInternal, EtcdCode::kUnavailable}) {
    EXPECT_FALSE(is_refusal(code));
  }
}

TEST(EtcdMessagesTest, MembersOfAWrongTypeAreRefused) {
  for (const std::string_view json : {
           R"([])",
           R"({"header":1})",
           R"({"header":{"revision":"-1"}})",
           R"({"header":{"revision":"9223372036854775808"}})",
           R"({"header":{"revision":1.5}})",
           R"({"header":{"revision":"x"}})",
           R"({"kvs":{}})",
           R"({"kvs":[1]})",
           R"({"kvs":[{"key":"Y"}]})",
           R"({"kvs":[{"key":7}]})",
           R"({"count":"1")",
           R"({} {})",
           "",
       }) {
    EXPECT_FALSE(parse_etcd_range(json)) << json;
  }
  EXPECT_FALSE(parse_etcd_txn(R"({"succeeded":"true"})"));
  EXPECT_FALSE(parse_etcd_txn(R"({"responses":[[]]})"));
  EXPECT_FALSE(parse_etcd_watch(R"({"result":{"events":[{"type":"PUT"}]}})"));
  EXPECT_FALSE(parse_etcd_watch(R"({"result":{"events":[{"type":"MOVE","kv":{}}]}})"));
  EXPECT_FALSE(parse_etcd_watch(R"({})"));
}

TEST(EtcdMessagesTest, RefusesWhatIsNestedOrTooLarge) {
  const std::string deep = R"({"x":)" + std::string(1000, '[') + std::string(1000, ']') + "}";
  EXPECT_FALSE(parse_etcd_range(deep));
  EXPECT_FALSE(parse_etcd_range(std::string(kEtcdReplyBytesMax + 1, ' ')));
}

TEST(EtcdMessagesTest, RefusesEveryTornReply) {
  const std::string whole =
      R"({"header":{"revision":"10"},"kvs":[{"key":"YQ==","value":"dg=="}],"count":"1"})";
  ASSERT_TRUE(parse_etcd_range(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse_etcd_range(whole.substr(0, size)));
  }
}

}  // namespace
}  // namespace server::cluster
