// SPDX-License-Identifier: MIT
//
// Ends all subscriptions of a session, for RESET and the session's end.
//
// Thread safety: to be called from the session's thread.
#pragma once

#include "server/pubsub/pub_sub.h"
#include "server/session/session.h"

namespace server {

// Ends all subscriptions of the session, silently.
void unsubscribe_all(PubSub& pubsub, Session& session);

}  // namespace server
