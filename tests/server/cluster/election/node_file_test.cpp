// SPDX-License-Identifier: MIT
#include "server/cluster/election/node_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/server/cluster/sample_topology.h"
#include "tests/support/temp_directory.h"

namespace server::cluster {
namespace {

NodeFile sample_file() {
  return {id_of('a'), {sample_topology(), 12}, "s1", 7};
}

TEST(NodeFileTest, ReadsBackAWrittenFile) {
  const auto parsed = parse_node_file(node_file_text(sample_file()));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, id_of('a'));
  EXPECT_EQ(parsed->topology.revision, 12U);
  EXPECT_EQ(parsed->topology.topology, sample_topology());
  EXPECT_EQ(parsed->kept_shard, "s1");
  EXPECT_EQ(parsed->kept_epoch, 7U);
}

TEST(NodeFileTest, KeepsClusterAndListeningAddresses) {
  NodeFile file = sample_file();
  EXPECT_FALSE(parse_node_file(node_file_text(file))->listening);
  file.cluster = "shop";
  file.kept_boot = "boot";
  file.listening = Listening{"10.0.0.1 ::1", 7001, 7101};
  const auto parsed = parse_node_file(node_file_text(file));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->cluster, "shop");
  EXPECT_EQ(parsed->kept_boot, "boot");
  EXPECT_EQ(parsed->listening, file.listening);
}

TEST(NodeFileTest, NodeWithoutATopologyHasAnId) {
  const auto parsed = parse_node_file(node_file_text({id_of('b'), {}, "", 0}));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, id_of('b'));
  EXPECT_EQ(parsed->topology.revision, 0U);
}

TEST(NodeFileTest, DamageIsRefused) {
  const std::string text = node_file_text(sample_file());
  for (size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_FALSE(parse_node_file(text.substr(0, size))) << size;
  }
  for (const std::string bad : {"[]", "{}", R"({"format":2})", R"({"format":1,"id":"a"})"}) {
    EXPECT_FALSE(parse_node_file(bad)) << bad;
  }
}

TEST(NodeFileTest, FileIsReplacedWhole) {
  const support::TempDirectory directory;
  const std::string path = directory.path() + "/cluster.json";
  const auto none = read_node_file(path);
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
  ASSERT_TRUE(write_node_file(path, sample_file()));
  ASSERT_TRUE(write_node_file(path, {id_of('c'), {}, "", 0}));
  EXPECT_EQ((*read_node_file(path))->id, id_of('c'));
  std::ofstream(path) << "{";
  EXPECT_FALSE(read_node_file(path));
}

// A start with a file that cannot be examined must not begin as a new node.
TEST(NodeFileTest, UnreadablePathIsAnError) {
  const support::TempDirectory directory;
  const std::string path = directory.path() + "/cluster.json";
  std::filesystem::create_symlink("cluster.json", path);
  EXPECT_FALSE(read_node_file(path));
}

}  // namespace
}  // namespace server::cluster
