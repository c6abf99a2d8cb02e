// SPDX-License-Identifier: MIT
//
// What a client is sent when keys have changed that it tracks.
//
// Thread safety: to be called on the session's thread.
// Source: redis.io/docs/manual/client-side-caching.
#pragma once

#include <string>

namespace server {

class Clients;
class PubSub;
class Session;
class Tracking;
struct Delivery;

// The bytes, none when the session does not want to be told, or cannot be. Where it redirects to
// another client the invalidation goes on to the inbox of that one's thread. REQUIRES: the delivery
// is an invalidation.
std::string invalidation_news(PubSub& pubsub, const Clients& clients, Session& session,
                              const Delivery& delivery);

// Takes the session's invalidations out of its thread's inbox before their turn, and returns their
// bytes. Those that it redirects to another client stay.
std::string take_invalidation_news(PubSub& pubsub, Tracking& tracking, Session& session);

}  // namespace server
