// SPDX-License-Identifier: MIT
//
// Decides whether commands must wait until a new leader may serve. Ends subscriptions to shard
// channels whose slots this server does not own.
//
// Thread safety: must be called on the session's thread.
#pragma once

#include <string>

namespace server {

class PubSub;
class Session;

namespace cluster {
class ClusterState;
}

// Returns whether commands are held back until this server, as a new leader, may serve.
bool awaits_cluster(const cluster::ClusterState& cluster);

// In a cluster, ends the session's subscriptions to shard channels whose slots this server does not
// own. Returns the messages that notify the client of the ended subscriptions.
std::string end_foreign_channels(PubSub& pubsub, cluster::ClusterState& cluster, Session& session);

}  // namespace server
