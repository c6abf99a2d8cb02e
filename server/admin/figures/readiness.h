// SPDX-License-Identifier: MIT
//
// Whether this server may be sent clients, for /readyz.
//
// Thread safety: pure functions of figures that any thread may read.
#pragma once

#include <string>

namespace server {
struct Services;
}

namespace server::admin {

// Why not; empty when it is ready. A replica's lag is the time since its leader was last heard,
// because a leader that is idle still pings.
std::string unready_cause(const Services& services);

}  // namespace server::admin
