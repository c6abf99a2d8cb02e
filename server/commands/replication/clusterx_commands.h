// SPDX-License-Identifier: MIT
//
// fail_over: the part of CLUSTER FAILOVER after its checks. A replica takes over from its leader.
//
// Thread safety: must be called by the session's thread.
#pragma once

namespace server {

class Context;

// Starts the failover, and replies later. If `is_forced`, the replica takes over without asking the
// leader.
void fail_over(Context& ctx, bool is_forced);

}  // namespace server
