// SPDX-License-Identifier: MIT
//
// What Member wants to be done, and the words in which it is told of the outcome.
//
// Thread safety: values.
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

// How much of a shard's history a node has. The epoch is that of the leader whose history it is: a
// leader's own, a replica's that of the leader that its stream came from; 0 since a start.
struct HistoryPosition {
  uint64_t epoch = 0;
  uint64_t offset = 0;

  auto operator<=>(const HistoryPosition&) const = default;
};

// What replication tells of this node.
struct ReplicationFacts {
  struct Replica {
    std::string id;
    uint64_t acked = 0;  // in this leader's stream
    bool is_online = false;
  };
  // False while it loads, or its copy of the shard is none: empty since the start, or torn by a
  // snapshot that has not ended.
  bool has_whole_copy = false;
  HistoryPosition position;
  std::vector<Replica> replicas;  // of a leader
  // What a start finds on the disk is all that this node had acknowledged, or nearly so: it keeps a
  // log. A snapshot alone may be old.
  bool keeps_log = true;
  // Of a replica: bytes of its leader have come lately, on a link that is up.
  bool hears_leader = false;
  // The time since bytes of the leader came; the maximum while its link is down.
  int64_t leader_silence_us = std::numeric_limits<int64_t>::max();
  // Until then alive/<own id> is this process's, as far as it knows, and not that of an earlier
  // life or of another process that was given the same id. Of the node's clock.
  int64_t present_until_us = 0;
  // False while the append log fails: then this server refuses writes.
  bool log_works = true;
  // The epoch in which the server executes its role of a leader; 0 if it does not. The role follows
  // Promote later, because the change may have to wait for a load.
  uint64_t led_epoch = 0;

  bool has_acknowledged(std::string_view replica_id, uint64_t offset) const {
    return std::ranges::any_of(replicas, [&](const Replica& replica) {
      return replica.id == replica_id && replica.is_online && replica.acked >= offset;
    });
  }
};

// Reads the topology, linearizably. `known_revision`: the answer may be "unchanged".
// Answered by Member::topology_read().
struct ReadTopology {
  uint64_t call = 0;
  uint64_t known_revision = 0;
};

// Writes the topology if etcd still has it at `revision` (0: has none). `gone`, if it is named,
// must have no key alive/<gone>. `needs_own_alive`: this node's own alive/ must be that of this
// process. Answered by Member::topology_changed().
struct ChangeTopology {
  uint64_t call = 0;
  uint64_t revision = 0;
  Topology topology;
  std::string gone = {};
  bool needs_own_alive = false;
};

// CLUSTERX PROMISE <shard> <epoch>, to `peer`. Answered by Member::promise_answered().
struct AskPromise {
  uint64_t call = 0;
  std::string peer;
  std::string shard;
  uint64_t epoch = 0;
};

// CLUSTERX OFFSET <shard>, to `peer`. Answered by Member::offset_answered().
struct AskOffset {
  uint64_t call = 0;
  std::string peer;
  std::string shard;
};

// CLUSTERX RESIGNED <shard> <epoch>, to `peer`: that epoch's leader acknowledges nothing any more.
// Answered by Member::successor_serves(), once the peer serves.
struct ReportResigned {
  std::string peer;
  std::string shard;
  uint64_t epoch = 0;
};

// Writes the epoch into cluster.json and syncs the file. Answered by Member::epoch_kept(), or not
// at all if the write fails.
struct KeepEpoch {
  std::string shard;
  uint64_t epoch = 0;
};

// Holds back all writes and lets those under way end. Then calls Member::writes_held().
struct HoldWrites {};
// To be done once the topology that this node has is shown to clients.
struct ReleaseWrites {};

// Makes this node the leader, which ReplicationFacts::led_epoch reports. It acknowledges when its
// permit allows it. Epoch 0: it led before it started, and gives its stream to no replica, because
// replicas may have more data.
struct Promote {
  uint64_t epoch = 0;
};
// Makes this node a replica of `leader`, in that leader's epoch. It follows no leader if that is
// empty. A newer Promote or Follow replaces one that has not begun, and a load for an older role is
// given up.
struct Follow {
  std::string leader;
  uint64_t epoch = 0;
};

using MemberAction =
    std::variant<ReadTopology, ChangeTopology, AskPromise, AskOffset, ReportResigned, KeepEpoch,
                 HoldWrites, ReleaseWrites, Promote, Follow>;

// How etcd answered a change. Refused: a compare failed. Unknown: it may still be carried out.
enum class ChangeOutcome : uint8_t { kCommitted, kRefused, kUnknown };
// How etcd answered a read. Unchanged: it has the known revision. Changed: it has another one,
// newer or older. Absent: it has none. Invalid: it has a document that is refused.
enum class ReadOutcome : uint8_t { kUnchanged, kChanged, kAbsent, kInvalid, kUnknown };

}  // namespace server::cluster
