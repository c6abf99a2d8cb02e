// SPDX-License-Identifier: MIT
//
// answer_awaited: what WAIT and WAITAOF say once replicas and disks have come far enough, SHUTDOWN
// when the server does not end, and CLIENT PAUSE and DEBUG RELOAD when their work has ended.
//
// Thread safety: on the thread of the session that waits; what defer_reply() returns may be called
// from any.
// Source: Redis 7.2's WAIT and WAITAOF.
#pragma once

#include <functional>

#include "core/result.h"
#include "protocol/reply_writer.h"
#include "server/dispatch/services.h"
#include "server/session/session.h"

namespace server {

class Context;

// False, and nothing written, when there is more to wait for and this was not the last chance.
bool answer_awaited(Services& services, const AwaitedAcks& awaited, bool is_last_chance,
                    protocol::ReplyWriter reply);

// Answers, or has the session wait until there is an answer.
void await(Context& ctx, const AwaitedAcks& awaited);

// For a handler whose work another thread may end: that calls end() once. The handler calls await()
// when it has handed `end` over. REQUIRES: not inside EXEC.
struct Deferral {
  std::function<void(const core::Result<>&)> end;
  AwaitedAcks awaited;
};
Deferral defer_reply(const Context& ctx);

}  // namespace server
