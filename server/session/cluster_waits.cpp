// SPDX-License-Identifier: MIT
#include "server/session/cluster_waits.h"

#include "core/keyspace/slot.h"
#include "protocol/reply_writer.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/view.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/session.h"

namespace server {

bool awaits_cluster(const cluster::ClusterState& cluster) {
  return cluster.service() == cluster::Service::kHeld;
}

std::string end_foreign_channels(PubSub& pubsub, cluster::ClusterState& cluster, Session& session) {
  constexpr auto kKind = SubscriptionKind::kShardChannel;
  if (session.subscriptions.count(kKind) == 0 || !cluster.is_on()) return {};
  const cluster::View& view = cluster.view_of(session.client->view_index);
  protocol::OutputBuffer news;
  protocol::ReplyWriter writer(news, session.client->resp);
  for (const std::string& name : session.subscriptions.names(kKind)) {
    if (view.has_topology() && view.owns(core::keyspace::slot_of(name))) continue;
    pubsub.unsubscribe(kKind, name, session.client->id);
    session.subscriptions.remove(kKind, name);
    writer.push(3);
    writer.bulk("sunsubscribe");
    writer.bulk(name);
    writer.integer(static_cast<int64_t>(session.subscriptions.count(kKind)));
  }
  return std::string(news.view());
}

}  // namespace server
