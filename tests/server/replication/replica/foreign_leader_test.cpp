// SPDX-License-Identifier: MIT
//
// Tests leaders that run RedisBloom or valkey-bloom: their snapshots as full syncs, and their
// append logs as streams. A replica must get the same filters as these servers have.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "persistence/rdb/rdb_writer.h"
#include "tests/support/memory_streams.h"
#include "tests/support/replica_fixture.h"
#include "tests/support/snapshots.h"
#include "tests/support/vectors.h"

namespace server {
namespace {

class ForeignLeaderTest : public ReplicaFixture {
 protected:
  using Words = std::vector<std::string>;

  // Returns the content of an append log file that the vendor's server wrote. The file's name ends
  // with `ending`.
  static std::string read_log(const std::string& vendor, const std::string& folder,
                              std::string_view ending) {
    const std::string name = vendor + "/" + folder + "/appendonlydir";
    for (const auto& file : std::filesystem::directory_iterator(vectors::path(name))) {
      const std::string file_name = file.path().filename().string();
      if (file_name.ends_with(ending)) return vectors::read(name + "/" + file_name);
    }
    ADD_FAILURE() << "no " << ending << " in " << name;
    return "";
  }
  static Words numbered(Words command, const std::string& prefix, int begin, int end) {
    for (int i = begin; i < end; ++i) command.push_back(prefix + std::to_string(i));
    return command;
  }
  static std::string ones(size_t count) {
    return array(std::vector<std::string>(count, integer(1)));
  }
  static vectors::Expected expected_filter(const std::string& vendor, const std::string& name) {
    const auto all = vectors::expected(vendor);
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const auto& filter) { return filter.name == name; });
    EXPECT_NE(found, all.end());
    return *found;
  }
  // Expects that BF.INFO reports the parameters that the vendor's server reported, and that the
  // filter has the same false positives.
  void expect_filter(const vectors::Expected& filter) {
    const std::string name = filter.name == "binkey" ? std::string("bin\0key\xff", 8) : filter.name;
    const auto figure = [&](const char* field) { return run({"BF.INFO", name, field}); };
    EXPECT_EQ(figure("CAPACITY"), array({integer(static_cast<int64_t>(filter.capacity))})) << name;
    EXPECT_EQ(figure("FILTERS"), array({integer(static_cast<int64_t>(filter.layer_count))}));
    EXPECT_EQ(figure("ITEMS"), array({integer(static_cast<int64_t>(filter.item_count))})) << name;
    const std::string expansion =
        filter.expansion == 0 ? kNull : integer(static_cast<int64_t>(filter.expansion));
    EXPECT_EQ(figure("EXPANSION"), array({expansion})) << name;
    std::vector<std::string> answers(1000, integer(0));
    for (const int number : filter.false_positives) {
      answers[static_cast<size_t>(number)] = integer(1);
    }
    EXPECT_EQ(run(numbered({"BF.MEXISTS", name}, "absent:", 0, 1000)), array(answers)) << name;
  }
  // Expects all keys that the vendor's files contain. The filters in `changed` are not checked.
  void expect_all(const std::string& vendor, const std::vector<std::string>& changed = {}) {
    run({"SELECT", "0"});
    for (const vectors::Expected& filter : vectors::expected(vendor)) {
      if (std::ranges::find(changed, filter.name) == changed.end()) expect_filter(filter);
    }
    EXPECT_EQ(run(numbered({"BF.MEXISTS", "tiny"}, "item:", 0, 50)), ones(50));
    EXPECT_EQ(run(numbered({"BF.MEXISTS", "scaled"}, "scaled:", 0, 200)), ones(200));
    EXPECT_EQ(run(numbered({"BF.MEXISTS", "nonscaling"}, "ns:", 0, 50)), ones(50));
    EXPECT_EQ(run(numbered({"BF.MEXISTS", "wide"}, "wide:", 0, 1000)), ones(1000));
    EXPECT_EQ(run({"GET", "str"}), bulk("hello world"));
    EXPECT_EQ(run({"GET", "bigint"}), bulk("9223372036854775807"));
    EXPECT_EQ(run({"PEXPIRETIME", "ttlbf"}), integer(4'102'444'800'000));
    EXPECT_EQ(run({"GETBIT", "bitmap", "65535"}), integer(1));
    run({"SELECT", "1"});
    EXPECT_EQ(run({"BF.CARD", "db1filter"}), integer(5));
    EXPECT_EQ(run({"GET", "db1str"}), bulk("one"));
    run({"SELECT", "0"});
  }
  // Promotes this server. Expects that the filters then grow in the layout that they have.
  void expect_growth_as_leader() {
    EXPECT_EQ(run({"REPLICAOF", "NO", "ONE"}), kOk);
    for (int i = 200; i < 1000; ++i) run({"BF.ADD", "scaled", "scaled:" + std::to_string(i)});
    EXPECT_EQ(run(numbered({"BF.MEXISTS", "scaled"}, "scaled:", 0, 1000)), ones(1000));
    const std::string layers = run({"BF.INFO", "scaled", "FILTERS"});
    ASSERT_TRUE(layers.starts_with("*1\r\n:")) << layers;
    EXPECT_GT(std::stoi(layers.substr(5)), 5);
  }
};

// Test parameters: the kind of server, the name of its snapshot file, and whether an end mark
// replaces the size of the snapshot.
class ForeignSnapshotTest
    : public ForeignLeaderTest,
      public ::testing::WithParamInterface<std::tuple<const char*, const char*, bool>> {};

TEST_P(ForeignSnapshotTest, IsTakenWhole) {
  const auto [vendor, file, is_marked] = GetParam();
  begin_stream(vectors::read(std::string(vendor) + "/" + file), 17,
               is_marked ? PlayedLeader::kMark : "");
  await_applied(17);
  expect_all(vendor);
}

TEST_P(ForeignSnapshotTest, GrowsInItsLayoutsAfterAPromotion) {
  const auto [vendor, file, is_marked] = GetParam();
  begin_stream(vectors::read(std::string(vendor) + "/" + file), 17,
               is_marked ? PlayedLeader::kMark : "");
  expect_growth_as_leader();
}

INSTANTIATE_TEST_SUITE_P(Vendors, ForeignSnapshotTest,
                         ::testing::Combine(::testing::Values("redisbloom", "valkey-bloom"),
                                            ::testing::Values("dump.rdb", "dump-uncompressed.rdb",
                                                              "dump-nochecksum.rdb"),
                                            ::testing::Bool()));

class ForeignStreamTest : public ForeignLeaderTest,
                          public ::testing::WithParamInterface<std::string> {
 protected:
  // Sends another server's append log file to the replica as a replication stream. This is possible
  // because the file has no RDB preamble: it has the commands that its server sent to replicas.
  void take_stream() {
    const std::string stream =
        read_log(GetParam(), "aof-preamble-no-live", "appendonly.aof.1.incr.aof");
    ASSERT_GT(stream.size(), 1000U);
    begin_stream(kEmptySnapshot, 100);
    played_.say(stream);
    await_applied(100 + stream.size());
  }
};

TEST_P(ForeignStreamTest, MakesWhatThatServerHad) {
  take_stream();
  expect_all(GetParam());
}

TEST_P(ForeignStreamTest, MakesFiltersThatGrowAfterAPromotion) {
  take_stream();
  expect_growth_as_leader();
}

TEST_P(ForeignStreamTest, GoesOnBehindASnapshotInPiecesOfAnySize) {
  const std::string folder = "aof-preamble-yes-rewritten";
  const std::string snapshot = read_log(GetParam(), folder, ".base.rdb");
  const std::string stream = read_log(GetParam(), folder, ".incr.aof");
  begin_stream(snapshot, 0, PlayedLeader::kMark);
  constexpr size_t kPiece = 7;
  for (size_t at = 0; at < stream.size(); at += kPiece) played_.say(stream.substr(at, kPiece));
  await_applied(stream.size());
  expect_all(GetParam(), {"tiny", "scaled"});
  EXPECT_EQ(run({"BF.EXISTS", "tiny", "item:50"}), integer(1));
  EXPECT_EQ(run({"BF.EXISTS", "scaled", "scaled:200"}), integer(1));
  EXPECT_EQ(run({"GET", "after"}), bulk("rewrite"));
}

INSTANTIATE_TEST_SUITE_P(Vendors, ForeignStreamTest,
                         ::testing::Values("redisbloom", "valkey-bloom"));

// valkey-bloom replicates BF.LOAD as if the whole payload were one item.
class ForeignLoadTest : public ForeignLeaderTest {
 protected:
  void take_load() {
    const std::string payload = vectors::read("valkey-bloom/load/tiny.bin");
    // In the payload, the seed follows the head of the object and the version, size and hash count
    // of the first layer.
    const std::string seed = payload.substr(51, 32);
    const auto insertion = [&](const char* name, const std::string& item) {
      return command({"BF.INSERT", name, "CAPACITY", "100", "ERROR", "0.01", "TIGHTENING", "0.5",
                      "SEED", seed, "EXPANSION", "2", "ITEMS", item});
    };
    const std::string stream =
        command({"SELECT", "0"}) + insertion("tiny", payload) + insertion("plain", "item:7");
    begin_stream(kEmptySnapshot);
    played_.say(stream);
    await_applied(stream.size());
  }
};

TEST_F(ForeignLoadTest, APayloadInTheStreamIsLoaded) {
  take_load();
  expect_filter(expected_filter("valkey-bloom", "tiny"));
  EXPECT_EQ(run(numbered({"BF.MEXISTS", "tiny"}, "item:", 0, 50)), ones(50));
}

TEST_F(ForeignLoadTest, AnyOtherItemIsAnItem) {
  take_load();
  EXPECT_EQ(run({"BF.CARD", "plain"}), integer(1));
  EXPECT_EQ(run({"BF.EXISTS", "plain", "item:7"}), integer(1));
}

TEST_F(ForeignLoadTest, LoadedFiltersSurviveOurSnapshot) {
  take_load();
  run({"REPLICAOF", "NO", "ONE"});
  std::string snapshot;
  persistence::StringSink sink(snapshot);
  ASSERT_TRUE(persistence::write_rdb(sink, keyspace_, {}));
  core::keyspace::Keyspace reloaded(16, 1);
  ASSERT_TRUE(snapshots::load(snapshot, reloaded));
  EXPECT_EQ(snapshots::contents(reloaded), snapshots::contents(keyspace_));
}

TEST_F(ForeignLoadTest, LoadedFiltersAcceptItemsAfterAPromotion) {
  take_load();
  run({"REPLICAOF", "NO", "ONE"});
  EXPECT_EQ(run({"BF.ADD", "tiny", "item:50"}), integer(1));
  EXPECT_EQ(run({"BF.CARD", "tiny"}), integer(51));
}

TEST_F(ForeignLeaderTest, TypesThatAreNotServedAreSkippedWhenTheyMayBe) {
  run({"CONFIG", "SET", "rdb-foreign-types", "skip"});
  begin_stream(vectors::read("redisbloom/mixed-types.rdb"));
  EXPECT_EQ(run({"BF.EXISTS", "g", "b"}), integer(1));
}

}  // namespace
}  // namespace server
