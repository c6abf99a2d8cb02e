// SPDX-License-Identifier: MIT
//
// The knowledge of a Member at the start of its process: from cluster.json, the configuration and
// the machine.
//
// Thread safety: free functions.
#pragma once

#include <string>

#include "server/cluster/member/member_state.h"
#include "server/cluster/member/node_file.h"

namespace server {
class Config;
}

namespace server::cluster {

// Identifies the time since the machine was started; "" if the system does not say it.
std::string boot_id();

MemberOptions member_options(const NodeFile& file, const PermitTimes& times, const Config& config);

}  // namespace server::cluster
