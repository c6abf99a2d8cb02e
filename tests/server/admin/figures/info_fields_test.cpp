// SPDX-License-Identifier: MIT
#include "server/admin/figures/info_fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace server::admin {
namespace {

TEST(InfoFieldsTest, MetricsAreNamedOnceAndValid) {
  std::set<std::string_view> names;
  const auto check = [&](const InfoField& field) {
    EXPECT_TRUE(names.insert(field.metric).second) << field.metric;
    EXPECT_TRUE(field.metric.starts_with("redis_") || field.metric.starts_with("bloomery_"));
    EXPECT_TRUE(std::ranges::all_of(field.metric, [](char c) {
      return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '_';
    })) << field.metric;
  };
  for (const InfoField& field : info_fields()) check(field);
  for (const InfoField& field : leader_fields()) check(field);
}

}  // namespace
}  // namespace server::admin
