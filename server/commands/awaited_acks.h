// SPDX-License-Identifier: MIT
//
// answer_awaited: what WAIT and WAITAOF say once replicas and disks have come far enough, and
// SHUTDOWN when the server does not end.
//
// Thread safety: on the thread of the session that waits.
// Source: Redis 7.2's WAIT and WAITAOF.
#pragma once

#include "protocol/reply_writer.h"
#include "server/commands/services.h"
#include "server/session.h"

namespace server {

// False, and nothing written, when there is more to wait for and this was not the last chance.
bool answer_awaited(Services& services, const AwaitedAcks& awaited, bool is_last_chance,
                    protocol::ReplyWriter reply);

}  // namespace server
