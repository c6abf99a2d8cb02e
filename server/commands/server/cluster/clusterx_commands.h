// SPDX-License-Identifier: MIT
//
// CLUSTER FAILOVER on a replica.
//
// Thread safety: to be called by the session's thread.
#pragma once

namespace server {

class Context;

// Answers later. is_forced: without asking the leader.
void fail_over(Context& ctx, bool is_forced);

}  // namespace server
