// SPDX-License-Identifier: MIT
#include "server/cluster_tool/backup.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

Backup sample_backup() {
  return {"shop",
          {sample_topology(), 12},
          {{"s1", "10.0.0.1:7001", {std::string(40, '1'), 500, 1000, 7}},
           {"s2", "10.0.0.3:7001", {std::string(40, '2'), 0, 90, 0}}}};
}

TEST(BackupTest, ManifestIsReadBack) {
  const auto parsed = parse_backup(backup_json(sample_backup()));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->cluster, "shop");
  EXPECT_EQ(parsed->version.revision, 12U);
  EXPECT_EQ(parsed->version.topology, sample_topology());
  ASSERT_EQ(parsed->shards.size(), 2U);
  EXPECT_EQ(parsed->shards[0].file(), "s1.rdb");
  EXPECT_EQ(parsed->shards[0].snapshot.offset, 500);
  EXPECT_EQ(parsed->shards[0].snapshot.keys, 7U);
}

TEST(BackupTest, DamagedManifestIsRefused) {
  const std::string text = backup_json(sample_backup());
  for (size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_FALSE(parse_backup(text.substr(0, size))) << size;
  }
  Backup lacking = sample_backup();
  lacking.shards.pop_back();
  EXPECT_EQ(parse_backup(backup_json(lacking)).error().message, "ERR backup.json: lacks shard s2");
  EXPECT_FALSE(parse_backup(R"({"format":2})"));
}

TEST(BackupTest, RestoredClusterHasOtherNodes) {
  const Node one{id_of('1'), "10.0.1.1", 7001, 0, ""};
  const Node two{id_of('2'), "10.0.1.2", 7001, 0, ""};
  const Node three{id_of('3'), "10.0.1.3", 7001, 0, ""};
  const auto topology = plan_restore(sample_backup(), {two, one, three});
  ASSERT_TRUE(topology) << topology.error().message;
  const Shard& first = *topology->shard("s1");
  EXPECT_EQ(first.leader, two.id);
  EXPECT_EQ(first.members, (std::vector{two.id, three.id}));
  EXPECT_EQ(first.insync, std::vector{two.id});
  EXPECT_EQ(first.epoch, sample_topology().shard("s1")->epoch + 1);
  EXPECT_EQ(first.slots, sample_topology().shard("s1")->slots);
  EXPECT_EQ(topology->shard("s2")->leader, one.id);
  EXPECT_EQ(topology->nodes.size(), 3U);
  EXPECT_FALSE(plan_restore(sample_backup(), {one})) << "two shards need two servers";
  EXPECT_FALSE(plan_restore(sample_backup(), {one, one}));
}

}  // namespace
}  // namespace server::cluster
