// SPDX-License-Identifier: MIT
#include "server/cluster_node/announced.h"

#include <algorithm>
#include <utility>

#include "server/base/config/config.h"
#include "server/base/config/words.h"
#include "server/base/log/log.h"
#include "server/cluster/etcd_client.h"
#include "server/cluster_node/etcd_feed.h"

namespace server::cluster {
namespace {

constexpr int64_t kAnnounceUs = 1'000'000;

bool is_wildcard(const std::string& word) {
  return word == "*" || word == "0.0.0.0" || word == "::" || word == "::*";
}

bool is_loopback(const std::string& word) {
  return word.starts_with("127.") || word == "::1";
}

// Returns the addresses of the option `bind`. A leading '-' marks an optional address.
std::vector<std::string> addresses_of(const std::string& bind) {
  std::vector<std::string> words = split_at_spaces(bind);
  for (std::string& word : words) {
    if (word.starts_with('-')) word.erase(0, 1);
  }
  return words;
}

// Returns the address at which other nodes reach a server whose option `bind` has changed. `ip` is
// the address before the change. If the old `bind` named `ip` and the new `bind` does not cover it,
// returns an address of the new `bind` if one is suitable. In all other cases returns `ip`.
std::string moved_address(const std::string& ip, const std::string& bind_before,
                          const std::string& bind_now) {
  const auto before = addresses_of(bind_before);
  const auto now = addresses_of(bind_now);
  const auto has = [&ip](const auto& words) { return std::ranges::find(words, ip) != words.end(); };
  if (!has(before) || has(now) || std::ranges::any_of(now, is_wildcard)) return ip;
  const auto found = std::ranges::find_if_not(now, is_loopback);
  if (found != now.end()) return *found;
  return now.empty() || !is_loopback(ip) ? ip : now.front();
}

}  // namespace

Announcer::Announcer(EtcdClient& client, const EtcdKeys& keys, const Config& config,
                     std::string own_id, std::optional<Listening> before,
                     std::function<void(const Listening&)> keep)
    : client_(client),
      keys_(keys),
      config_(config),
      own_id_(std::move(own_id)),
      before_(std::move(before)),
      keep_(std::move(keep)) {}

Listening listening_of(const Config& config) {
  return {config.text(OptionId::kBind), config.port(),
          static_cast<uint16_t>(config.integer(OptionId::kTlsPort))};
}

Node announced_node(Node node, const Config& config, const Listening& before) {
  const Listening now = listening_of(config);
  if (std::string ip = config.text(OptionId::kClusterAnnounceIp); !ip.empty()) {
    node.ip = std::move(ip);
  } else {
    node.ip = moved_address(node.ip, before.bind, now.bind);
  }
  const auto port_of = [&config](OptionId announced, uint16_t known, uint16_t former,
                                 uint16_t present) {
    const auto wanted = static_cast<uint16_t>(config.integer(announced));
    if (wanted != 0) return wanted;
    return known == former ? present : known;
  };
  node.port = port_of(OptionId::kClusterAnnouncePort, node.port, before.port, now.port);
  node.tls_port =
      port_of(OptionId::kClusterAnnounceTlsPort, node.tls_port, before.tls_port, now.tls_port);
  std::string hostname = config.text(OptionId::kClusterAnnounceHostname);
  if (!hostname.empty()) node.hostname = std::move(hostname);
  return node;
}

std::optional<Topology> announced_topology(const Topology& topology, std::string_view own_id,
                                           const Config& config, const Listening& before) {
  const Node* const node = topology.node(own_id);
  if (node == nullptr) return std::nullopt;
  Node announced = announced_node(*node, config, before);
  if (announced == *node) return std::nullopt;
  Topology changed = topology;
  *changed.node(own_id) = std::move(announced);
  return changed;
}

void Announcer::tick(int64_t now_us, const TopologyVersion& known) {
  if (now_us < next_us_) return;
  next_us_ = now_us + kAnnounceUs;
  const Listening now = listening_of(config_);
  const auto changed = announced_topology(known.topology, own_id_, config_, before_.value_or(now));
  if (!changed) {
    if (before_ != now) keep_(now);
    before_ = now;
    return;
  }
  if (const auto valid = check_topology(*changed); !valid) {
    next_us_ = now_us + 60 * kAnnounceUs;
    return log_warning("Cluster: the address that this node announces is not valid: {}",
                       valid.error().message);
  }
  const EtcdTxn txn{{EtcdCompare::unchanged(keys_.topology, known.revision)},
                    {EtcdPut{keys_.topology, topology_json(*changed)}}};
  client_.txn(txn, [](const EtcdResult<EtcdTxnReply>& result) {
    if (result.answered() && result.reply.succeeded) {
      log_notice("Cluster: the topology has the address that this node announces");
    }
  });
}

}  // namespace server::cluster
