// SPDX-License-Identifier: MIT
//
// Tests the values that the cluster options accept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/base/config/config.h"

namespace server {
namespace {

std::string fault_of(std::vector<const char*> words) {
  words.insert(words.begin(), "bloomery-server");
  Config config;
  const auto loaded = config.load(static_cast<int>(words.size()), words.data());
  return loaded ? "" : loaded.error().message;
}

TEST(ClusterOptionsTest, EtcdHasSeveralAddresses) {
  const std::vector<const char*> words = {"bloomery-server", "--cluster-etcd", "http://a:2379",
                                          "http://b:2379"};
  Config config;
  ASSERT_TRUE(config.load(static_cast<int>(words.size()), words.data()));
  EXPECT_EQ(config.text(OptionId::kClusterEtcd), "http://a:2379 http://b:2379");
}

TEST(ClusterOptionsTest, AnAnnouncedNameHasAnEffect) {
  const std::vector<const char*> words = {"bloomery-server", "--cluster-announce-hostname",
                                          "a.example"};
  Config config;
  ASSERT_TRUE(config.load(static_cast<int>(words.size()), words.data()));
  EXPECT_THAT(config.take_warnings(), testing::IsEmpty());
  EXPECT_EQ(config.text(OptionId::kClusterAnnounceHostname), "a.example");
  EXPECT_THAT(fault_of({"--cluster-announce-hostname", "a b"}), testing::HasSubstr("host name"));
}

TEST(ClusterOptionsTest, NamesAndIdsAreChecked) {
  EXPECT_EQ(fault_of({"--cluster-name", "shop.eu-1_a"}), "");
  EXPECT_THAT(fault_of({"--cluster-name", "a/b"}), testing::HasSubstr("1 to 64 letters"));
  EXPECT_THAT(fault_of({"--cluster-name", ""}), testing::HasSubstr("1 to 64 letters"));
  EXPECT_EQ(fault_of({"--cluster-node-id", std::string(40, '7').c_str()}), "");
  EXPECT_THAT(fault_of({"--cluster-node-id", "7"}), testing::HasSubstr("40 lower-case"));
  EXPECT_THAT(fault_of({"--cluster-node-timeout", "499"}), testing::HasSubstr("500"));
}

}  // namespace
}  // namespace server
