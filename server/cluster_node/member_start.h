// SPDX-License-Identifier: MIT
//
// Creates the options of this node's Member when the process starts. The options come from
// cluster.json, the configuration, and the kernel's boot id.
//
// Thread safety: any thread may call the functions, which keep no state.
#pragma once

#include <string>

#include "server/cluster/election/member_state.h"
#include "server/cluster/election/node_file.h"

namespace server {
class Config;
}

namespace server::cluster {

// Returns an id that changes whenever the machine is started; "" if the system provides none.
std::string boot_id();

MemberOptions member_options(const NodeFile& file, const PermitTimes& times, const Config& config);

}  // namespace server::cluster
