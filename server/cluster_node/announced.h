// SPDX-License-Identifier: MIT
//
// Announcer: writes this node's address into the topology. The options cluster-announce-ip,
// cluster-announce-port, cluster-announce-tls-port and cluster-announce-hostname state the address.
// Without these options, the Announcer writes a change of `port`, `tls-port` or `bind` into the
// topology, if the topology has the former value. A node behind a mapped port keeps the address
// with which it was added.
//
// Thread safety: Announcer belongs to the thread that runs the io_context; the functions are pure.
// Source: https://redis.io/docs/latest/operate/oss_and_stack/management/config-file/.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "server/cluster/election/node_file.h"
#include "server/cluster/topology.h"

namespace server {
class Config;
}  // namespace server

namespace server::cluster {

class EtcdClient;
struct EtcdKeys;

Listening listening_of(const Config& config);

// Returns a copy of `node` with the address, ports and host name that `config` describes. All other
// fields are unchanged. `before` has the addresses at which the server listened when the address in
// `node` was written to the topology.
Node announced_node(Node node, const Config& config, const Listening& before);

// Returns the topology with the address of this node. Returns nullopt if the topology already has
// that address, or does not name the node.
std::optional<Topology> announced_topology(const Topology& topology, std::string_view own_id,
                                           const Config& config, const Listening& before);

class Announcer {
 public:
  // `before` is the value of `listening` in cluster.json. When the server's addresses have changed,
  // tick() passes the new value to `keep`, which must store it.
  Announcer(EtcdClient& client, const EtcdKeys& keys, const Config& config, std::string own_id,
            std::optional<Listening> before, std::function<void(const Listening&)> keep);

  // Sends this node's address to etcd once a second, until the watch reports a topology with that
  // address. Must be called several times a second.
  void tick(int64_t now_us, const TopologyVersion& known);

 private:
  EtcdClient& client_;
  const EtcdKeys& keys_;
  const Config& config_;
  const std::string own_id_;
  std::optional<Listening> before_;
  const std::function<void(const Listening&)> keep_;
  int64_t next_us_ = 0;
};

}  // namespace server::cluster
