// SPDX-License-Identifier: MIT
//
// What clients of a cluster wait for, and what they are told of its changes.
//
// Thread safety: to be called on the session's thread.
#pragma once

#include <string>

namespace server {

class PubSub;
class Session;

namespace cluster {
class ClusterState;
}

// Whether commands are held back until this server, a new leader, may serve.
bool awaits_cluster(const cluster::ClusterState& cluster);

// Ends the session's subscriptions to shard channels that other servers have now; returns what the
// client is told of it.
std::string end_foreign_channels(PubSub& pubsub, cluster::ClusterState& cluster, Session& session);

}  // namespace server
