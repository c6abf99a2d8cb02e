// SPDX-License-Identifier: MIT
//
// Writes invalidation messages to a client whose tracked keys have changed.
//
// Thread safety: must be called on the session's thread.
// Source: redis.io/docs/manual/client-side-caching.
#pragma once

#include <string>

namespace server {

class Clients;
class PubSub;
class Session;
class Tracking;
struct Delivery;

// Returns the message. Returns no bytes if the session no longer wants it, or cannot receive it. If
// the session redirects to another client, the invalidation is put into the inbox of that client's
// thread. REQUIRES: the delivery is an invalidation.
std::string invalidation_news(PubSub& pubsub, const Clients& clients, Session& session,
                              const Delivery& delivery);

// Removes the session's invalidations from the thread's inbox and returns their bytes. All other
// messages stay, even earlier ones, and so do invalidations that other clients redirect to the
// session.
std::string take_invalidation_news(PubSub& pubsub, Tracking& tracking, Session& session);

}  // namespace server
