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

// Where the stream that this server produces or follows ends.
int64_t replication_offset(const Context& ctx);
// How much of this leader's stream a node of the cluster has acknowledged; 0 if it does not follow.
int64_t replica_offset(const Context& ctx, std::string_view node_id);

// DEBUG CHANGE-REPL-ID: replicas whose link breaks have to load everything anew.
void forget_replication_history(Context& ctx);

}  // namespace server
