// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/cluster/topology.h"
#include "tests/server/cluster/sample_topology.h"
#include "tests/support/error_matcher.h"

namespace server::cluster {
namespace {

TEST(TopologyJsonTest, TheDocumentMakesTheSameTopology) {
  const Topology topology = sample_topology();
  const std::string text = topology_json(topology);
  const auto parsed = parse_topology(text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(*parsed, topology);
  EXPECT_EQ(topology_json(*parsed), text);
}

// A newer version may add members to the JSON object. An older version keeps these members when it
// changes the topology.
TEST(TopologyJsonTest, UnknownMembersAreWrittenBack) {
  std::string text = topology_json(sample_topology());
  const auto add = [&text](const std::string& behind, const std::string& member) {
    const size_t at = text.find(behind);
    ASSERT_NE(at, std::string::npos) << behind;
    text.insert(at + behind.size(), member);
  };
  add("\"format\":1,", "\"moves\":[{\"slot\":5}],");
  add("\"epoch\":7,", "\"weight\":3,");
  add("\"host\":\"b.example\"", ",\"zone\":\"z1\"");
  auto parsed = parse_topology(text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_NE(*parsed, sample_topology());
  parsed->shard("s1")->epoch = 8;
  const std::string changed = topology_json(*parsed);
  EXPECT_NE(changed.find("\"moves\":[{\"slot\":5}]"), std::string::npos) << changed;
  EXPECT_NE(changed.find("\"weight\":3"), std::string::npos) << changed;
  EXPECT_NE(changed.find("\"zone\":\"z1\""), std::string::npos) << changed;
  EXPECT_EQ(*parse_topology(changed), *parsed);
}

TEST(TopologyJsonTest, WrongDocumentsAreRefused) {
  const std::string good = topology_json(sample_topology());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parse_topology(good.substr(0, size))) << size;
  }
  const auto with = [&](const std::string& part, const std::string& other) {
    std::string text = good;
    const size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    text.replace(at, part.size(), other);
    const auto parsed = parse_topology(text);
    return parsed ? "" : parsed.error().message;
  };
  EXPECT_THAT(with("\"format\":1", "\"format\":2"), is_error("ERR", "format"));
  EXPECT_THAT(with("\"epoch\":7", "\"epoch\":-7"), is_error("ERR", "epoch"));
  EXPECT_THAT(with("\"epoch\":7", "\"epoch\":7.5"), is_error("ERR", "epoch"));
  EXPECT_THAT(with("\"port\":7001", "\"port\":70010"), is_error("ERR", "port"));
  EXPECT_THAT(with("\"slots\":\"0-5460 7000\"", "\"slots\":\"0-5460,7000\""),
              is_error("ERR", "slot range '0-5460,7000'"));
  EXPECT_THAT(with("\"s1\":", "\"S1\":"), is_error("ERR", "shard 'S1'"));
  EXPECT_FALSE(parse_topology(std::string(kTopologyBytesMax + 1, ' ')));
  EXPECT_FALSE(parse_topology("[]"));
}

}  // namespace
}  // namespace server::cluster
