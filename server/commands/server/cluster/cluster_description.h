// SPDX-License-Identifier: MIT
//
// The cluster in the words of CLUSTER SLOTS, SHARDS, NODES, REPLICAS and INFO: the newest view, as
// the asking client is to see it.
//
// Thread safety: what takes a Context is to be called by the session's thread; cluster_info_text()
// by any. Source: Redis 7.0.15; https://redis.io/docs/latest/commands/cluster-nodes/.
#pragma once

#include <string>

#include "server/cluster/cluster_state.h"
#include "server/cluster/view.h"

namespace server {

class Context;

// The view that the client's thread has.
const cluster::View& view_of(const Context& ctx);

enum class WithSlots : uint8_t { kNo, kYes };
// One line of CLUSTER NODES.
std::string node_line(const Context& ctx, const cluster::Node& node, WithSlots with_slots);

// CLUSTER SLOTS, SHARDS, INFO.
void write_slots(Context& ctx);
void write_shards(Context& ctx);
std::string cluster_info_text(const cluster::View& view, const cluster::ClusterState& state);

}  // namespace server
