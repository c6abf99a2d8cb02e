// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "server/base/config/config.h"
#include "server/base/config/value.h"

namespace server {
namespace {

class MemoryOptionsTest : public ::testing::Test {
 protected:
  std::string set(const std::string& name, const std::string& value) {
    const NamedValue pair{name, value};
    const auto done = config_.set({&pair, 1});
    return done ? "OK" : done.error().message;
  }
  std::string get(std::string_view name) {
    const std::string_view names[] = {name};
    return config_.get(names).at(0).second;
  }

  Config config_;
};

TEST_F(MemoryOptionsTest, PoliciesAreThoseOfRedis) {
  EXPECT_EQ(get("maxmemory-policy"), "noeviction");
  for (const std::string policy :
       {"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru",
        "allkeys-lfu", "allkeys-random", "noeviction"}) {
    EXPECT_EQ(set("maxmemory-policy", policy), "OK");
    EXPECT_EQ(get("maxmemory-policy"), policy);
  }
  EXPECT_EQ(set("maxmemory-policy", "Allkeys-LRU"), "OK");
  EXPECT_EQ(
      set("maxmemory-policy", "foo"),
      config_set_error(
          "maxmemory-policy",
          unknown_choice("volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, "
                         "allkeys-lfu, allkeys-random, noeviction")
              .reason));
}

TEST_F(MemoryOptionsTest, NumbersHaveTheLimitsOfRedis) {
  EXPECT_EQ(set("maxmemory-samples", "64"), "OK");
  EXPECT_EQ(set("maxmemory-samples", "0"),
            config_set_error("maxmemory-samples", out_of_range(1, 2147483647).reason));
  EXPECT_EQ(set("maxmemory-eviction-tenacity", "101"),
            config_set_error("maxmemory-eviction-tenacity", out_of_range(0, 100).reason));
  EXPECT_EQ(set("lfu-log-factor", "0"), "OK");
  EXPECT_EQ(set("lfu-decay-time", "0"), "OK");
  EXPECT_EQ(set("slave-ignore-maxmemory", "no"), "OK");
  EXPECT_EQ(get("replica-ignore-maxmemory"), "no");
}

}  // namespace
}  // namespace server
