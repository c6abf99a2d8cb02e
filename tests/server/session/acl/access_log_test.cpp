// SPDX-License-Identifier: MIT
#include "server/session/acl/access_log.h"

#include <gtest/gtest.h>

#include <string>

namespace server::acl {
namespace {

Denied denied(const std::string& object) {
  return {.reason = Reason::kKey, .object = object, .user = "alice", .client = "id=1"};
}

TEST(AccessLogTest, TheNewestComesFirst) {
  AccessLog log;
  log.add(denied("a"), 1000);
  log.add(denied("b"), 2000);
  const auto entries = log.newest(10);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].denied.object, "b");
  EXPECT_EQ(entries[1].denied.object, "a");
  EXPECT_EQ(log.newest(1).size(), 1U);
  EXPECT_EQ(log.newest(0).size(), 0U);
  log.clear();
  EXPECT_TRUE(log.newest(10).empty());
  EXPECT_EQ(log.count(Reason::kKey), 2U);
  EXPECT_EQ(log.count(Reason::kLogin), 0U);
}

TEST(AccessLogTest, TheSameEventWithinAMinuteCounts) {
  AccessLog log;
  log.add(denied("a"), 1000);
  log.add(denied("b"), 1500);
  log.add(denied("a"), 61'000);
  auto entries = log.newest(10);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].denied.object, "a");
  EXPECT_EQ(entries[0].count, 2U);
  EXPECT_EQ(entries[0].last_ms, 61'000);
  EXPECT_EQ(entries[0].first_ms, 1000);
  EXPECT_EQ(entries[0].id, 0U);
  EXPECT_EQ(entries[1].id, 1U);
  log.add(denied("a"), 121'001);
  EXPECT_EQ(log.newest(10).size(), 3U);
  Denied in_transaction = denied("a");
  in_transaction.in_transaction = true;
  log.add(in_transaction, 121'001);
  EXPECT_EQ(log.newest(10).size(), 4U);
}

TEST(AccessLogTest, TheLengthIsLimited) {
  AccessLog log;
  log.set_limit(2);
  for (const char* const object : {"a", "b", "c"}) log.add(denied(object), 1000);
  EXPECT_EQ(log.newest(10).size(), 2U);
  // As in Redis, a lower limit on the log's length applies only when the next new event is logged.
  log.set_limit(1);
  log.add(denied("c"), 2000);
  EXPECT_EQ(log.newest(10).size(), 2U);
  log.add(denied("d"), 2000);
  ASSERT_EQ(log.newest(10).size(), 1U);
  EXPECT_EQ(log.newest(10)[0].denied.object, "d");
  log.set_limit(0);
  log.add(denied("e"), 2000);
  EXPECT_TRUE(log.newest(10).empty());
}

}  // namespace
}  // namespace server::acl
