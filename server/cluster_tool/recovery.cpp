// SPDX-License-Identifier: MIT
#include "server/cluster_tool/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/printable.h"

namespace server::cluster {
namespace {

const KeptFile* newest_of(const std::vector<KeptFile>& kept) {
  const auto revision_of = [](const KeptFile& one) {
    return one.file ? one.file->topology.revision : 0;
  };
  const auto newest = std::ranges::max_element(kept, {}, revision_of);
  return newest == kept.end() || revision_of(*newest) == 0 ? nullptr : &*newest;
}

// Returns the highest epoch of the shard in the server's cluster.json.
uint64_t epoch_in(const NodeFile& file, const std::string& shard) {
  const Shard* const known = file.topology.topology.shard(shard);
  const uint64_t epoch = known == nullptr ? 0 : known->epoch;
  return file.kept_shard == shard ? std::max(epoch, file.kept_epoch) : epoch;
}

std::string description(const std::optional<TopologyVersion>& stored,
                        const std::vector<KeptFile>& kept) {
  std::string text = stored ? fmt::format("etcd has revision {}\n", stored->revision)
                            : std::string("etcd has no topology\n");
  for (const KeptFile& one : kept) {
    text += one.file ? fmt::format("{} keeps revision {}\n", one.address.text(),
                                   one.file->topology.revision)
                     : fmt::format("ignored: {}\n", core::without_code(one.file.error().message));
  }
  return text;
}

// Returns the error for servers that keep no topology, with the reason for each server.
core::Error no_topology(const std::vector<KeptFile>& kept) {
  std::string reasons;
  for (const KeptFile& one : kept) {
    reasons += reasons.empty() ? "" : "; ";
    reasons += one.file ? fmt::format("{}: it has seen no topology", one.address.text())
                        : std::string(core::without_code(one.file.error().message));
  }
  return {"ERR no server keeps a topology that can be read: " + reasons};
}

bool share_a_node(const Topology& a, const Topology& b) {
  return std::ranges::any_of(a.nodes,
                             [&b](const Node& node) { return b.node(node.id) != nullptr; });
}

}  // namespace

core::Result<> check_cluster(const Address& address, const NodeFile& file,
                             std::string_view cluster) {
  if (file.cluster.empty() || file.cluster == cluster) return {};
  return core::Error{fmt::format(
      "ERR {} belongs to cluster '{}', not to '{}': correct --cluster, or name a server of '{}'",
      address.text(), core::printable(file.cluster), cluster, cluster)};
}

core::Result<Recovery> plan_recovery(const std::optional<TopologyVersion>& stored,
                                     uint64_t store_revision, const std::vector<KeptFile>& kept,
                                     const SlotRecord& record) {
  const KeptFile* const newest = newest_of(kept);
  if (newest == nullptr) return no_topology(kept);
  const TopologyVersion& version = newest->file->topology;
  if (stored && !share_a_node(stored->topology, version.topology)) {
    return core::Error{fmt::format(
        "ERR etcd has the topology of other servers, and none of them is in the topology that {} "
        "keeps: correct --etcd, --cluster or the address; if no server uses etcd's topology, "
        "delete its key `topology` first",
        newest->address.text())};
  }
  Recovery recovery{description(stored, kept), std::nullopt};
  const bool is_refused = stored && !record.check(stored->topology, version);
  if (is_refused) {
    recovery.text += "its slots changed without a record, so servers refuse it\n";
  }
  const bool is_valid = stored && !is_refused;
  if (is_valid && (stored->revision == version.revision || supersedes(*stored, version))) {
    recovery.text += "etcd has the newest topology: there is nothing to recover\n";
    return recovery;
  }
  // Servers ignore a topology whose revision is lower than that of their own topology, unless the
  // epochs of all shards have grown.
  const bool has_gone_back = is_valid || store_revision < version.revision;
  Topology topology = version.topology;
  for (Shard& shard : topology.shards) {
    for (const KeptFile& one : kept) {
      const uint64_t epoch = one.file ? epoch_in(*one.file, shard.name) : 0;
      if (epoch > shard.epoch) {
        return core::Error{fmt::format(
            "ERR {} keeps the newest topology, but {} knows epoch {} of shard {}, and the topology "
            "has epoch {}: another server must keep a newer one, name it, too",
            newest->address.text(), one.address.text(), epoch, shard.name, shard.epoch)};
      }
    }
    if (has_gone_back) ++shard.epoch;
    const Node& leader = *topology.node(shard.leader);
    recovery.text +=
        fmt::format("to be written: shard {}, epoch {}, leader {}\n", shard.name, shard.epoch,
                    Address{leader.ip, leader.port != 0 ? leader.port : leader.tls_port}.text());
  }
  recovery.topology = std::move(topology);
  return recovery;
}

}  // namespace server::cluster
