// SPDX-License-Identifier: MIT
#include "server/durability/log/sync_record.h"

#include <gtest/gtest.h>

namespace server {
namespace {

TEST(SyncRecordTest, CountsSyncsThatTookTooLong) {
  SyncRecord syncs;
  EXPECT_FALSE(syncs.is_running());
  EXPECT_FALSE(syncs.is_overdue(SyncRecord::kOverdueUs * 2));
  syncs.begin(0);
  EXPECT_TRUE(syncs.is_running());
  EXPECT_EQ(syncs.end(SyncRecord::kOverdueUs), SyncRecord::kOverdueUs);
  EXPECT_FALSE(syncs.is_running());
  EXPECT_EQ(syncs.delayed(), 0U);
  syncs.begin(100);
  EXPECT_FALSE(syncs.is_overdue(SyncRecord::kOverdueUs + 100));
  EXPECT_TRUE(syncs.is_overdue(SyncRecord::kOverdueUs + 101));
  EXPECT_EQ(syncs.end(SyncRecord::kOverdueUs + 101), SyncRecord::kOverdueUs + 1);
  EXPECT_FALSE(syncs.is_overdue(SyncRecord::kOverdueUs * 9));
  EXPECT_EQ(syncs.delayed(), 1U);
}

}  // namespace
}  // namespace server
