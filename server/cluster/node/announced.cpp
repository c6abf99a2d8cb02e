// SPDX-License-Identifier: MIT
#include "server/cluster/node/announced.h"

#include <utility>

#include "server/cluster/etcd_client.h"
#include "server/cluster/node/etcd_feed.h"
#include "server/config/config.h"
#include "server/process/log.h"

namespace server::cluster {
namespace {

constexpr int64_t kAnnounceUs = 1'000'000;

}  // namespace

Node announced_node(Node node, const Config& config) {
  if (std::string ip = config.text(OptionId::kClusterAnnounceIp); !ip.empty()) {
    node.ip = std::move(ip);
  }
  const auto port = static_cast<uint16_t>(config.integer(OptionId::kClusterAnnouncePort));
  if (port != 0) node.port = port;
  const auto tls_port = static_cast<uint16_t>(config.integer(OptionId::kClusterAnnounceTlsPort));
  if (tls_port != 0) node.tls_port = tls_port;
  std::string hostname = config.text(OptionId::kClusterAnnounceHostname);
  if (!hostname.empty()) node.hostname = std::move(hostname);
  return node;
}

std::optional<Topology> announced_topology(const Topology& topology, std::string_view own_id,
                                           const Config& config) {
  const Node* const node = topology.node(own_id);
  if (node == nullptr) return std::nullopt;
  Node announced = announced_node(*node, config);
  if (announced == *node) return std::nullopt;
  Topology changed = topology;
  *changed.node(own_id) = std::move(announced);
  return changed;
}

void Announcer::tick(int64_t now_us, const TopologyVersion& known) {
  if (now_us < next_us_) return;
  next_us_ = now_us + kAnnounceUs;
  const auto changed = announced_topology(known.topology, own_id_, config_);
  if (!changed) return;
  if (const auto valid = check_topology(*changed); !valid) {
    next_us_ = now_us + 60 * kAnnounceUs;
    return log_warning("Cluster: what this node announces cannot be: {}", valid.error().message);
  }
  EtcdTxn txn;
  txn.compares = {EtcdCompare::unchanged(keys_.topology, known.revision)};
  txn.success = {EtcdPut{keys_.topology, topology_json(*changed)}};
  client_.txn(txn, [](const EtcdResult<EtcdTxnReply>& result) {
    if (result.answered() && result.reply.succeeded) {
      log_notice("Cluster: the topology has the address that this node announces");
    }
  });
}

}  // namespace server::cluster
