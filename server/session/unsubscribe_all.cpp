// SPDX-License-Identifier: MIT
#include "server/session/unsubscribe_all.h"

namespace server {

void unsubscribe_all(PubSub& pubsub, Session& session) {
  using enum SubscriptionKind;
  for (const SubscriptionKind kind : {kChannel, kPattern, kShardChannel}) {
    for (const std::string& name : session.subscriptions.names(kind)) {
      pubsub.unsubscribe(kind, name, session.id);
      session.subscriptions.remove(kind, name);
    }
  }
}

}  // namespace server
