// SPDX-License-Identifier: MIT
//
// Writes the replies of CLUSTER SLOTS, SHARDS, NODES, REPLICAS and INFO. They show the newest view,
// with the addresses that the asking client can use.
//
// Thread safety: functions that take a Context must be called by the session's thread;
// cluster_info_text() by any thread.
// Source: Redis 7.0.15; https://redis.io/docs/latest/commands/cluster-nodes/.
#pragma once

#include <string>

#include "server/cluster/cluster_state.h"
#include "server/cluster/view.h"

namespace server {

class Context;

enum class WithSlots : uint8_t { kNo, kYes };
// Returns the line of CLUSTER NODES that describes the node.
std::string node_line(const Context& ctx, const cluster::Node& node, WithSlots with_slots);

// These functions write the replies of CLUSTER SLOTS, SHARDS and INFO.
void write_slots(Context& ctx);
void write_shards(Context& ctx);
std::string cluster_info_text(const cluster::View& view, const cluster::ClusterState& state);

}  // namespace server
