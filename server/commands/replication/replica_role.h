// SPDX-License-Identifier: MIT
//
// Replies to ROLE on a replica, returns replication offsets, and starts a new replication history.
//
// Thread safety: the thread that runs the command calls the functions.
#pragma once

#include "server/dispatch/context.h"

namespace server {

// Replies with the leader's address, the state of the link to the leader, and the replication
// offset. REQUIRES: this server is a replica.
void answer_role_of_replica(Context& ctx);

// Returns the offset at the end of the replication stream that this server produces or follows.
int64_t replication_offset(const Context& ctx);
// Returns the offset of this leader's stream that a cluster node has acknowledged; 0 if the node is
// not a replica of this leader.
int64_t replica_offset(const Context& ctx, std::string_view node_id);

// Implements DEBUG CHANGE-REPL-ID: replicas that lose their link need a full sync afterwards.
void forget_replication_history(Context& ctx);

}  // namespace server
