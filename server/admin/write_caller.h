// SPDX-License-Identifier: MIT
//
// WriteCaller: runs a write command for an HTTP request, with the permissions of the request's
// user.
//
// The command runs on a thread that serves clients. Before a failover or a shutdown, the server
// waits only for the writes of these threads. As for other clients, the reply is delayed until the
// append log contains the write. The reply is an error if this leader has lost its permit to
// acknowledge writes.
//
// Thread safety: call() may be called from any thread. `on_reply` is called on a thread that serves
// clients.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "protocol/reply.h"
#include "server/admin/command_caller.h"

namespace server::net {
class ReplyGate;
}

namespace server::admin {

class WriteCaller {
 public:
  // Runs a task on a thread that serves clients. The task gets the ReplyGate and the counters of
  // that thread.
  using Task = std::function<void(net::ReplyGate&, ThreadStatistics&)>;
  using Post = std::function<void(Task)>;
  using OnReply = std::function<void(protocol::Reply)>;

  WriteCaller(Services& services, Post post) : services_(services), post_(std::move(post)) {}

  // If the server ends before the reply, `on_reply` is never called.
  void call(const CommandCaller::Caller& caller, std::vector<std::string> words, OnReply on_reply);

 private:
  Services& services_;
  const Post post_;
};

}  // namespace server::admin
