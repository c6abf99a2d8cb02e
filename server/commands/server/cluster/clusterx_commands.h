// SPDX-License-Identifier: MIT
//
// CLUSTER FAILOVER on a replica.
//
// Thread safety: must be called by the session's thread.
#pragma once

namespace server {

class Context;

// Replies later. If `is_forced`, the leader is not asked.
void fail_over(Context& ctx, bool is_forced);

}  // namespace server
