// SPDX-License-Identifier: MIT
//
// Ends all subscriptions of a session, for RESET and the session's end.
//
// Thread safety: to be called from the session's thread.
#pragma once

#include "server/pubsub/pub_sub.h"
#include "server/session/session.h"

namespace server {

class Tracking;

// Ends all subscriptions of the session, silently.
void unsubscribe_all(PubSub& pubsub, Session& session);
// Ends CLIENT TRACKING, the second for a session that ends.
void stop_tracking(Tracking& tracking, Session& session);
void forget_tracking(Tracking& tracking, Session& session);

}  // namespace server
