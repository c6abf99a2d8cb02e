// SPDX-License-Identifier: MIT
//
// Delivers the messages in a thread's inbox to the thread's connections.
//
// Invariants: each call does a bounded amount of work, so other clients are served during a flood
// of messages. No lock is held while connections are written to.
// Thread safety: must be called by the thread whose inbox is read.
#pragma once

#include "server/net/io_threads.h"
#include "server/session/pubsub/monitor_feed.h"
#include "server/session/pubsub/tracking.h"

namespace server::net {

// Delivers all messages, in several iterations of the event loop if necessary.
void deliver_messages(IoThread& thread, PubSub& pubsub, Tracking& tracking);

// Delivers all lines to the thread's clients that have sent MONITOR. Closes the clients that do not
// keep up.
void deliver_monitored(IoThread& thread, MonitorFeed& feed);

}  // namespace server::net
