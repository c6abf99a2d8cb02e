// SPDX-License-Identifier: MIT
//
// ClusterTool: what bloomery-cluster's commands do, with etcd and with the servers.
//
// Invariants: the topology is changed by one transaction that compares its revision; a change whose
// outcome is unknown is asked for again until it is known. What a command refuses has changed
// nothing.
// Thread safety: none; calls block.
// Source: docs/cluster.md.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/cluster/etcd_client.h"
#include "server/cluster/tool/node_client.h"
#include "server/cluster/tool/plan.h"
#include "server/cluster/tool/recovery.h"
#include "server/cluster/tool/status.h"

namespace server::cluster {

// What a command has done, as lines for a person.
struct Done {
  std::string text;
};

class ClusterTool {
 public:
  // Errors: as EtcdClient::make, and a cluster's name that is none.
  static core::Result<std::unique_ptr<ClusterTool>> make(const EtcdOptions& options,
                                                         std::string cluster_name,
                                                         NodeAccess access);

  core::Result<Done> create(const std::vector<Address>& addresses, unsigned replicas);
  core::Result<Done> add(const Address& address, const std::string& shard);
  core::Result<Done> remove(const Address& address);
  // Gives a shard whose data are lost an empty leader. Errors: also, that the loss is not accepted.
  core::Result<Done> replace(const std::string& shard, const Address& address, bool accepts_loss);
  core::Result<Done> fail_over(const std::string& shard, const std::optional<Address>& to,
                               bool force);
  // Asks the servers at `addresses`, and all servers in the topologies that they keep. Puts the
  // newest topology into etcd; without `writes` it only says what it would do.
  core::Result<Done> recover(const std::vector<Address>& addresses, bool writes);
  // Writes the topology and a snapshot of each shard's leader into a new directory.
  core::Result<Done> backup(const std::string& directory);
  // Makes a cluster with the topology of a backup. The first servers hold the keys of its shards,
  // in the order of the shards' names. The others are empty.
  core::Result<Done> restore(const std::string& directory, const std::vector<Address>& addresses);
  core::Result<ClusterStatus> status();

 private:
  // Topology and who is alive, of one revision.
  struct Seen {
    std::optional<TopologyVersion> version;
    SlotRecord record;
    std::vector<std::string> alive;
    uint64_t store_revision = 0;  // of etcd as a whole
  };

  ClusterTool(std::string cluster_name, NodeAccess access)
      : name_(std::move(cluster_name)), access_(std::move(access)) {}

  template <class Reply>
  EtcdResult<Reply> wait(const std::function<void(EtcdHandler<Reply>)>& call);
  core::Result<Seen> read();
  // Errors: also, that there is no cluster of this name, or that its slots changed without a
  // record.
  core::Result<Seen> read_cluster();
  // Compares with `revision`, 0 for none. Records the slots, too. Returns the new revision.
  core::Result<uint64_t> write(const Topology& topology, uint64_t revision);
  // What came of a write that etcd has not confirmed; nullopt: not carried out, still possible.
  core::Result<std::optional<uint64_t>> outcome(const std::string& text, uint64_t revision);
  enum class AllowsKeys : uint8_t { kNo, kYes };
  // A server that may join: empty, in cluster mode, registered in this cluster.
  core::Result<Node> newcomer(const Address& address, const std::vector<std::string>& alive,
                              AllowsKeys allows_keys = AllowsKeys::kNo);
  // A server with keys that all lie in the shard's slots.
  core::Result<Node> restored_leader(const Address& address, const Shard& shard,
                                     uint64_t saved_keys, const std::vector<std::string>& alive);
  std::vector<KeptFile> ask_all(std::vector<Address> addresses) const;
  // Where this tool reaches the node.
  Address address_of(const Node& node) const;
  // Lines on nodes that have not taken the revision over in time; "" is none.
  std::string wait_for_nodes(const Topology& topology, uint64_t revision) const;

  const std::string name_;
  const NodeAccess access_;
  boost::asio::io_context io_;
  std::unique_ptr<EtcdClient> etcd_;
};

}  // namespace server::cluster
