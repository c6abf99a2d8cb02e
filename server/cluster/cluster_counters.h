// SPDX-License-Identifier: MIT
//
// ClusterCounters: this node's counters about its shard, for metrics and CLUSTER INFO.
//
// Thread safety: only the cluster's thread may write the counters. Any thread may read them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace server::cluster {

// The cause for which this node became the leader of its shard.
enum class FailoverCause : uint8_t {
  kHandover,    // the former leader handed the shard over to this node
  kLostLeader,  // this node took over because the former leader's lease had ended
  kForced,      // an administrator sent CLUSTER FAILOVER FORCE
};

// The names of the causes in metrics and CLUSTER INFO.
inline constexpr std::array<std::string_view, 3> kFailoverCauses = {"handover", "lost_leader",
                                                                    "forced"};

struct ClusterCounters {
  // How often this node became the leader of its shard, by FailoverCause.
  std::array<std::atomic<uint64_t>, kFailoverCauses.size()> failovers{};
  // How often this leader's permit to acknowledge writes ended before the leader had extended it.
  std::atomic<uint64_t> permit_lapses{0};
  // Bytes of the stream that the slowest connected replica lacks; 0 if this node is a replica.
  std::atomic<uint64_t> bytes_behind{0};

  void count(FailoverCause cause) { ++failovers[static_cast<size_t>(cause)]; }
};

}  // namespace server::cluster
