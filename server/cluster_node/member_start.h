// SPDX-License-Identifier: MIT
//
// Creates the options of this node's Member and of its client of etcd when the process starts. The
// options come from cluster.json, the configuration, and the kernel's boot id.
//
// Thread safety: any thread may call the functions, which keep no state.
#pragma once

#include <string>

#include "server/cluster/election/member_state.h"
#include "server/cluster/election/node_file.h"
#include "server/cluster/etcd_client.h"

namespace server {
class Config;
}

namespace server::cluster {

// Returns an id that changes whenever the machine is started; "" if the system provides none.
std::string boot_id();

MemberOptions member_options(const NodeFile& file, const PermitTimes& times, const Config& config);

// The time limit of a call is a tenth of cluster-node-timeout, within 0.7 to 1 second. So a big
// timeout also tolerates an etcd that answers slowly. A candidate waits two
// seconds for a peer with more history (Election::wait_us()), so a call may take one at most.
EtcdOptions etcd_options(const Config& config);

}  // namespace server::cluster
