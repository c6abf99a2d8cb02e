// SPDX-License-Identifier: MIT
//
// Tests big filters that change while a child process writes a snapshot: which bits the snapshot
// contains, and which commands may follow the snapshot.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/leader_fixture.h"
#include "tests/support/sanitized.h"
#include "tests/support/snapshots.h"

namespace server {
namespace {

constexpr int kAdded = support::rounds(20'000, 4'000);

class SharedArrays : public LeaderFixture {
 protected:
  SharedArrays() {
    run({"CONFIG", "SET", "repl-diskless-sync-delay", "0"});
    // The filter's array is far bigger than the buffer of a socket. So the child process that sends
    // the snapshot waits in the middle of the array until the replica reads more.
    reserve("native");
  }

  void reserve(const std::string& layout) {
    EXPECT_EQ(run({"BF.RESERVE", "f", "0.01", "10000000", "NONSCALING", "LAYOUT", layout}), kOk);
    add("f", "before", 1000);
  }
  // Makes the peer a replica that runs RedisBloom, and gives the filter the layout of RedisBloom.
  void make_foreign(Remote& peer) {
    run({"DEL", "f"});
    reserve("redisbloom");
    peer.traits().reads_effects = false;
  }

  void add(const std::string& key, std::string_view prefix, int count) {
    std::vector<std::string> command{"BF.MADD", key};
    for (int i = 0; i < count; ++i) command.push_back(fmt::format("{}:{}", prefix, i));
    run(command);
  }

  static const core::bloom::ScalableFilter& filter_in(core::keyspace::Keyspace& keyspace,
                                                      std::string_view name) {
    return keyspace.find_any(0, keyspace.ref(name))->filter();
  }
  // Returns the number of bits that are set in `first` but not in `second`.
  static size_t bits_beyond(const core::bloom::ScalableFilter& first,
                            const core::bloom::ScalableFilter& second) {
    const core::bloom::BitArray& ours = first.layer_bits(0);
    const uint64_t* theirs = second.layer_bits(0).words();
    size_t count = 0;
    for (size_t i = 0; i < ours.size_bytes() / 8; ++i) {
      count += static_cast<size_t>(std::popcount(ours.words()[i] & ~theirs[i]));
    }
    return count;
  }
};

// The journal contains the command COPY, not the copied filter. A replica executes it on the filter
// that it has loaded from the snapshot. So the snapshot must not contain bits of items that were
// added after the snapshot began.
TEST_F(SharedArrays, SnapshotHoldsNothingThatALaterCopyLacks) {
  Remote peer(*this);
  const std::string begun = begin_snapshot(peer);
  add("f", "until", kAdded);
  EXPECT_EQ(run({"COPY", "f", "copy"}), integer(1));
  add("f", "since", kAdded);
  core::keyspace::Keyspace received{16, 1};
  const auto loaded = snapshots::load(read_snapshot(peer, begun), received);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto& snapshot = filter_in(received, "f");
  EXPECT_EQ(snapshot.item_count(), 1000U);
  EXPECT_EQ(bits_beyond(snapshot, filter_in(keyspace_, "copy")), 0U);
  EXPECT_TRUE(filter_in(keyspace_, "f").may_contain("since:7"));
  EXPECT_TRUE(filter_in(keyspace_, "copy").may_contain("until:7"));
}

// A foreign replica, such as a Redis server with RedisBloom, executes the add that follows the
// snapshot. It counts the item only if the item's bits are not set yet. So the snapshot must not
// contain these bits.
TEST_F(SharedArrays, ForeignSnapshotHoldsNoLaterItems) {
  Remote peer(*this);
  make_foreign(peer);
  const auto before = filter_in(keyspace_, "f").clone();
  const std::string begun = begin_snapshot(peer);
  add("f", "since", kAdded);
  core::keyspace::Keyspace received{16, 1};
  const auto loaded = snapshots::load(read_snapshot(peer, begun), received);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(bits_beyond(filter_in(received, "f"), *before), 0U);
  EXPECT_EQ(bits_beyond(*before, filter_in(received, "f")), 0U);
}

TEST_F(SharedArrays, SnapshotsOfForeignStreamsHoldNoLaterItems) {
  {
    const std::scoped_lock lock(replication_.apply_mutex());
    const auto stripes =
        keyspace_.lock(core::keyspace::kAllStripes, core::keyspace::LockMode::kExclusive);
    replication_.become_replica();
    replication_.adopt({0, std::string(40, 'b'), 1000, true});
  }
  replication_.set_link_up(true);
  const auto before = filter_in(keyspace_, "f").clone();
  Remote peer(*this);
  const std::string begun = begin_snapshot(peer);
  run({"CONFIG", "SET", "replica-read-only", "no"});
  add("f", "since", kAdded);
  core::keyspace::Keyspace received{16, 1};
  ASSERT_TRUE(snapshots::load(read_snapshot(peer, begun), received));
  EXPECT_EQ(bits_beyond(filter_in(received, "f"), *before), 0U);
}

TEST_F(SharedArrays, WithoutMemoryForItNoExactSnapshotBegins) {
  free_bytes_ = 0;
  Remote peer(*this);
  make_foreign(peer);
  peer.traits().takes_eof_mark = true;
  peer.client.run({"PSYNC", "?", "-1"});
  EXPECT_FALSE(peer.hears_more()) << "not even the answer";
  free_bytes_ = uint64_t{1} << 40;
  advance_ms(10'001);
  EXPECT_NE(begin_snapshot_of(peer).find("+FULLRESYNC"), std::string::npos);
}

}  // namespace
}  // namespace server
