// SPDX-License-Identifier: MIT
//
// ROLE as a replica answers it.
//
// Thread safety: as Context.
#pragma once

#include "server/dispatch/context.h"

namespace server {

// Whom it follows, how well, and how far. REQUIRES: this is a replica.
void answer_role_of_replica(Context& ctx);

// DEBUG CHANGE-REPL-ID: replicas whose link breaks have to load everything anew.
// Where the stream that this server produces or follows ends.
int64_t replication_offset(const Context& ctx);

void forget_replication_history(Context& ctx);

}  // namespace server
