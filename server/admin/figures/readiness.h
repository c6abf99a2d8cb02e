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

// Returns why the server is not ready; empty if it is ready. A replica's lag is the time since the
// last bytes from its leader, because even an idle leader sends pings. While the link is down, it
// is the time since the link broke.
std::string unready_cause(const Services& services);

}  // namespace server::admin
