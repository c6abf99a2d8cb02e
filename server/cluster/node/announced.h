// SPDX-License-Identifier: MIT
//
// Announcer: has the topology tell what a node wants the others and clients to be told of it:
// cluster-announce-ip, -port, -tls-port and -hostname.
//
// Thread safety: Announcer belongs to the thread that runs the io_context; the functions are pure.
// Source: https://redis.io/docs/latest/operate/oss_and_stack/management/config-file/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/cluster/topology.h"

namespace server {
class Config;
}  // namespace server

namespace server::cluster {

class EtcdClient;
struct EtcdKeys;

// The node as its options have it. What is not set stays as it is.
Node announced_node(Node node, const Config& config);

// The topology with what this node announces; nullopt if it tells that already, or does not name
// the node.
std::optional<Topology> announced_topology(const Topology& topology, std::string_view own_id,
                                           const Config& config);

class Announcer {
 public:
  Announcer(EtcdClient& client, const EtcdKeys& keys, const Config& config, std::string own_id)
      : client_(client), keys_(keys), config_(config), own_id_(std::move(own_id)) {}

  // To be called often. The watch brings what has become of a change; if nothing has, it is tried
  // again.
  void tick(int64_t now_us, const TopologyVersion& known);

 private:
  EtcdClient& client_;
  const EtcdKeys& keys_;
  const Config& config_;
  const std::string own_id_;
  int64_t next_us_ = 0;
};

}  // namespace server::cluster
