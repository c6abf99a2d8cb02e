// SPDX-License-Identifier: MIT
#include "server/session/session.h"

#include "server/session/pubsub/pub_sub.h"
#include "server/session/pubsub/tracking.h"

namespace server {

Session::Session(uint64_t session_id) : ClientEndpoint(session_id) {}

Session::~Session() = default;

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
