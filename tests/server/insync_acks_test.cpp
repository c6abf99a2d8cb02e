// SPDX-License-Identifier: MIT
#include "server/insync_acks.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/cluster/election/member_actions.h"

namespace server {
namespace {

uint64_t acked(const std::set<std::string, std::less<>>& required,
               std::vector<cluster::ReplicationFacts::Replica> replicas) {
  cluster::ReplicationFacts facts;
  facts.replicas = std::move(replicas);
  return acked_by_all(required, facts);
}

constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();

TEST(InsyncAcksTest, SlowestRequiredMemberDecides) {
  EXPECT_EQ(acked({}, {{"a", 5, true}}), kAll);
  EXPECT_EQ(acked({"a"}, {{"a", 5, true}, {"b", 3, true}}), 5U);
  EXPECT_EQ(acked({"a", "b"}, {{"a", 5, true}, {"b", 3, true}}), 3U);
}

TEST(InsyncAcksTest, MissingMemberHasAcknowledgedNothing) {
  EXPECT_EQ(acked({"a", "c"}, {{"a", 5, true}}), 0U);
  EXPECT_EQ(acked({"a"}, {{"a", 5, false}}), 0U) << "it loads a snapshot";
}

TEST(InsyncAcksTest, NewerOfTwoLinksCounts) {
  EXPECT_EQ(acked({"a"}, {{"a", 5, false}, {"a", 4, true}}), 4U);
  EXPECT_EQ(acked({"a"}, {{"a", 2, true}, {"a", 4, true}}), 4U);
}

}  // namespace
}  // namespace server
