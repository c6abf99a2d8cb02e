// SPDX-License-Identifier: MIT
//
// Collects the options of a Member at the start of its process from cluster.json, the configuration
// and the machine.
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
