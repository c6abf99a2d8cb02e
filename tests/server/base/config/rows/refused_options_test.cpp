// SPDX-License-Identifier: MIT
//
// The start must fail if the configuration has a directive that restricts access and that this
// server does not support.
#include "server/base/config/option_table.h"
#include "tests/server/base/config/config_fixture.h"

namespace server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RefusedOptionsTest : public ConfigTest {};

TEST_F(RefusedOptionsTest, OtherValuesEndTheStart) {
  for (const auto& [line, advice] : {std::pair{"tls-auth-clients-user CN", "AUTH"},
                                     std::pair{"tls-auth-clients-user URI", "AUTH"},
                                     std::pair{"tls-expected-peer-name db", "tls-ca-cert-file"},
                                     std::pair{"preload-file rdb:/a.rdb", "dbfilename"}}) {
    Config config;
    const std::string error = load(config, {write("a.conf", line)});
    EXPECT_THAT(error, HasSubstr("FATAL CONFIG FILE ERROR")) << line;
    EXPECT_THAT(error, HasSubstr(advice)) << line;
  }
}

TEST_F(RefusedOptionsTest, DefaultsAreAccepted) {
  EXPECT_EQ(load({write("a.conf",
                        "tls-auth-clients-user off\ntls-expected-peer-name \"\"\n"
                        "preload-file \"\"\n")}),
            "");
  EXPECT_THAT(config_.take_warnings(), IsEmpty());
  EXPECT_EQ(get("tls-auth-clients-user"), "off");
}

TEST_F(RefusedOptionsTest, ConfigSetRefusesThem) {
  EXPECT_THAT(set({{"tls-auth-clients-user", "CN"}}), HasSubstr("only off is supported"));
  EXPECT_EQ(get("tls-auth-clients-user"), "off");
}

TEST_F(RefusedOptionsTest, TlsClusterNeedsTlsReplication) {
  const std::vector<std::string> cluster = {"--cluster-enabled", "yes", "--tls-cluster", "yes"};
  Config refused;
  EXPECT_THAT(load(refused, cluster), HasSubstr("tls-cluster yes needs tls-replication yes"));
  auto encrypted = cluster;
  encrypted.insert(encrypted.end(), {"--tls-replication", "yes"});
  ASSERT_EQ(load(encrypted), "");
  EXPECT_THAT(set({{"tls-replication", "no"}}), HasSubstr("tls-cluster yes needs"));
  EXPECT_EQ(set({{"tls-cluster", "no"}, {"tls-replication", "no"}}), "OK");
  Config alone;
  EXPECT_EQ(load(alone, {"--tls-cluster", "yes"}), "");
}

}  // namespace
}  // namespace server
