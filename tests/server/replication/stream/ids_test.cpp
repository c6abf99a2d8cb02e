// SPDX-License-Identifier: MIT
#include "server/replication/stream/ids.h"

#include <gtest/gtest.h>

namespace server {
namespace {

TEST(ReplicationIds, AreRandomAndWithoutAnEarlierHistory) {
  const ReplicationIds first;
  const ReplicationIds second;
  EXPECT_TRUE(is_replication_id(first.id));
  EXPECT_NE(first.id, second.id);
  EXPECT_EQ(first.id2, std::string(40, '0'));
  EXPECT_EQ(first.second_offset, -1);
}

TEST(ReplicationIds, KnowWhatAnIdLooksLike) {
  EXPECT_TRUE(is_replication_id(std::string(20, 'a') + std::string(20, 'F')));
  EXPECT_FALSE(is_replication_id(std::string(39, 'a')));
  EXPECT_FALSE(is_replication_id(std::string(41, 'a')));
  EXPECT_FALSE(is_replication_id(std::string(40, 'g')));
  EXPECT_FALSE(is_replication_id("?"));
}

TEST(ReplicationIds, ContinueTheOwnHistoryFromAnywhere) {
  const ReplicationIds ids;
  EXPECT_TRUE(ids.are_continued_from(ids.id, 1));
  EXPECT_TRUE(ids.are_continued_from(ids.id, 1'000'000));
  EXPECT_FALSE(ids.are_continued_from(random_id(), 1));
  EXPECT_FALSE(ids.are_continued_from("?", -1));
}

TEST(ReplicationIds, ContinueTheEarlierHistoryUpToItsEnd) {
  ReplicationIds ids;
  const std::string old_id = ids.id;
  ids.shift(100);
  EXPECT_NE(ids.id, old_id);
  EXPECT_EQ(ids.id2, old_id);
  EXPECT_EQ(ids.second_offset, 101);
  // The new history begins with byte 101. A replica of the old history may continue from offset
  // 101, but not from a later offset.
  EXPECT_TRUE(ids.are_continued_from(old_id, 101));
  EXPECT_FALSE(ids.are_continued_from(old_id, 102));
  EXPECT_TRUE(ids.are_continued_from(ids.id, 102));
  // A server without an earlier history has zeros as second id. No replica may continue from this
  // id.
  EXPECT_FALSE(ReplicationIds().are_continued_from(std::string(40, '0'), 1));
}

TEST(ReplicationIds, AreComparedInAnyCase) {
  ReplicationIds ids;
  ids.id = std::string(40, 'a');
  EXPECT_TRUE(ids.are_continued_from(std::string(40, 'A'), 5));
}

}  // namespace
}  // namespace server
