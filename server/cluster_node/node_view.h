// SPDX-License-Identifier: MIT
//
// Creates the view of the cluster that a node publishes, from cluster.json and the list of live
// nodes.
//
// Thread safety: any thread may call the function while no other thread changes `file`. Any thread
// may use the returned view, which never changes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/cluster/election/member_state.h"
#include "server/cluster/election/node_file.h"
#include "server/cluster/view.h"

namespace server::cluster {

inline std::shared_ptr<const View> view_of(const NodeFile& file, const std::optional<IdSet>& alive,
                                           TopologyFault fault) {
  if (file.topology.revision == 0) return std::make_shared<View>(file.id);
  std::vector<std::string> ids;
  if (alive) {
    ids.assign(alive->begin(), alive->end());
  } else {
    // Until etcd has answered, every node of the topology counts as alive.
    for (const Node& node : file.topology.topology.nodes) ids.push_back(node.id);
  }
  return std::make_shared<View>(file.id, file.topology, std::move(ids), fault);
}

}  // namespace server::cluster
