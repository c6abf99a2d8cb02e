// SPDX-License-Identifier: MIT
//
// Defines the actions that a Member requests, and the types in which their outcomes are reported.
//
// Thread safety: a value shared by threads needs a lock.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/cluster/topology.h"

namespace server::cluster {

// The position up to which a node has its shard's history. `epoch` is the epoch of the leader that
// wrote the history: of the node itself if it leads, otherwise of the leader that it follows.
// `epoch` is 0 after a start of the node.
struct HistoryPosition {
  uint64_t epoch = 0;
  uint64_t offset = 0;

  auto operator<=>(const HistoryPosition&) const = default;
};

// The state of this node's replication.
struct ReplicationFacts {
  struct Replica {
    std::string id;
    uint64_t acked = 0;  // offset in this leader's stream that the replica has acknowledged
    bool is_online = false;
    // False while the replica reports that its append log fails. The replica then stops reading the
    // stream. If it restarts, it loses the writes that its log lacks.
    bool log_works = true;

    // Returns whether the replica can be relied on to keep the writes that it acknowledges.
    bool keeps_stream() const { return is_online && log_works; }
  };
  // False while the node loads data or has no copy of the shard. The node has no copy if it has
  // been empty since its start, or if a full sync is not complete.
  bool has_whole_copy = false;
  HistoryPosition position;
  std::vector<Replica> replicas;  // the replicas of this node if it leads

  // True if this node keeps an append log. A restart then finds on the disk nearly everything that
  // the node had acknowledged. A snapshot alone may be old.
  bool keeps_log = true;
  // True on a replica whose link is up and that has recently received bytes from its leader.
  bool hears_leader = false;
  // The time since the last bytes from the leader; the largest int64_t while the link is down.
  int64_t leader_silence_us = std::numeric_limits<int64_t>::max();
  // Until this time by permit_clock_us(), the key alive/<own id> belongs to this process, unless
  // etcd ends the lease early. Later the key may belong to another process with the same id.
  int64_t present_until_us = 0;
  // False while the append log cannot be written. This server then refuses writes.
  bool log_works = true;
  // The epoch in which the server works as a leader; 0 if the server is not a leader. The epoch
  // changes some time after the action Promote, because the change of the role may have to wait for
  // a load.
  uint64_t led_epoch = 0;

  // Returns whether the replica has acknowledged the stream up to `offset`, is online, and reports
  // no failure of its append log.
  bool has_acknowledged(std::string_view replica_id, uint64_t offset) const {
    return std::ranges::any_of(replicas, [&](const Replica& replica) {
      return replica.id == replica_id && replica.keeps_stream() && replica.acked >= offset;
    });
  }
  // Returns whether the replica has reported that its append log fails.
  bool reports_failing_log(std::string_view replica_id) const {
    return std::ranges::any_of(replicas, [&](const Replica& replica) {
      return replica.id == replica_id && replica.is_online && !replica.log_works;
    });
  }
};

// Reads the topology, linearizably. The outcome is kUnchanged if etcd still has the topology of
// `known_revision`. After a restore of etcd, a recovery may have stored another topology at this
// revision. The outcome is then kChanged. The owner passes the outcome to Member::topology_read().
struct ReadTopology {
  uint64_t call = 0;
  uint64_t known_revision = 0;
};

// Writes `topology` if etcd's present topology has the revision `revision`. Revision 0 means that
// etcd must have no topology. If `gone` names a node, the key alive/<gone> must not exist. If
// `needs_own_alive` is true, the key alive/<own id> must belong to this process. The owner reports
// the outcome to Member::topology_changed().
struct ChangeTopology {
  uint64_t call = 0;
  uint64_t revision = 0;
  Topology topology;
  std::string gone = {};
  bool needs_own_alive = false;
};

// AskPromise: sends CLUSTERX PROMISE <shard> <epoch> to `peer`. The owner passes the answer to
// Member::promise_answered().
struct AskPromise {
  uint64_t call = 0;
  std::string peer;
  std::string shard;
  uint64_t epoch = 0;
};

// AskOffset: sends CLUSTERX OFFSET <shard> to `peer`. The owner passes the answer to
// Member::offset_answered().
struct AskOffset {
  uint64_t call = 0;
  std::string peer;
  std::string shard;
};

// Reads the topology and the live nodes. If they have changed, the owner calls
// Member::topology_seen() and Member::alive_seen().
struct ReadLiveNodes {};

// ReportResigned: sends CLUSTERX RESIGNED <shard> <epoch> to `peer`. The command reports that the
// leader of `epoch` will acknowledge no more writes. Once the peer serves, the owner calls
// Member::successor_serves().
struct ReportResigned {
  std::string peer;
  std::string shard;
  uint64_t epoch = 0;
};

// Writes the epoch into cluster.json and syncs the file. Then the owner calls Member::epoch_kept().
// After a failed write the owner calls nothing.
struct KeepEpoch {
  std::string shard;
  uint64_t epoch = 0;
};

// Blocks new writes and waits for running ones. Then the owner calls Member::writes_held() with the
// number of the handover.
struct HoldWrites {
  uint64_t handover = 0;
};
// Lets writes run again after HoldWrites. Before that, the node must publish its newest topology to
// the threads that serve clients.
struct ReleaseWrites {};

// Makes this node the leader. ReplicationFacts::led_epoch then changes to `epoch`. The node
// acknowledges writes when its permit allows it. Epoch 0 means that an earlier process of this node
// may have led the shard in the present epoch. Replicas may then have more data than this node, so
// it sends its stream to none of them.
struct Promote {
  uint64_t epoch = 0;
};
// Makes this node a replica of `leader`, in that leader's epoch. If `leader` is empty, the node
// follows no leader. A newer Promote or Follow replaces an older one that has not begun. If the
// older one is loading a snapshot, the load is canceled.
struct Follow {
  std::string leader;
  uint64_t epoch = 0;
};

using MemberAction =
    std::variant<ReadTopology, ChangeTopology, AskPromise, AskOffset, ReadLiveNodes, ReportResigned,
                 KeepEpoch, HoldWrites, ReleaseWrites, Promote, Follow>;

// The outcome of a change in etcd. kRefused: a comparison failed. kUnknown: etcd may still execute
// the change.
enum class ChangeOutcome : uint8_t { kCommitted, kRefused, kUnknown };
// The outcome of a read from etcd. With kUnchanged, etcd has the known revision. With kChanged,
// etcd has a newer or older topology. With kAbsent, etcd has no topology. With kInvalid, this node
// refuses the document in etcd.
enum class ReadOutcome : uint8_t { kUnchanged, kChanged, kAbsent, kInvalid, kUnknown };

}  // namespace server::cluster
