// SPDX-License-Identifier: MIT
#include "server/session/session.h"

#include "server/session/pubsub/pub_sub.h"
#include "server/session/pubsub/tracking.h"

namespace server {

const uint64_t Client::kObjectsBytes = sizeof(Client) + sizeof(Session);

Session::Session(uint64_t id)
    : client(std::make_shared<Client>(id)), subscriptions(client->subscriptions) {}

void unsubscribe_all(PubSub& pubsub, Session& session) {
  for (const SubscriptionKind kind : kSubscriptionKinds) {
    for (const std::string& name : session.subscriptions.names(kind)) {
      pubsub.unsubscribe(kind, name, session.client->id);
      session.subscriptions.remove(kind, name);
    }
  }
}

void stop_tracking(Tracking& tracking, Session& session) {
  if (session.subscriptions.tracking() == nullptr) return;
  tracking.end(session.client->id);
  session.subscriptions.set_tracking(nullptr);
}

}  // namespace server
