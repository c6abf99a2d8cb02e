// SPDX-License-Identifier: MIT
// The end of all subscriptions of a session, for RESET and the session's end.
#include "server/pubsub/pub_sub.h"
#include "server/pubsub/tracking.h"
#include "server/session/session.h"

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

void stop_tracking(Tracking& tracking, Session& session) {
  if (session.subscriptions.tracking() == nullptr) return;
  tracking.end(session.id);
  session.subscriptions.set_tracking(nullptr);
}

void forget_tracking(Tracking& tracking, Session& session) {
  tracking.forget(session.id);
}

}  // namespace server
