// SPDX-License-Identifier: MIT
//
// unready_cause: decides whether a load balancer may send clients to this server, for /readyz.
//
// Thread safety: pure functions of values that any thread may read.
#pragma once

#include <string>

namespace server {
struct Services;
}

namespace server::admin {

// Returns why the server is not ready; empty if it is ready. A replica is not ready if its lag
// exceeds http-ready-max-lag. The lag is the time since the last bytes from the leader, because
// even an idle leader sends pings. While the link is down, the lag is the time since it broke.
std::string unready_cause(const Services& services);

}  // namespace server::admin
