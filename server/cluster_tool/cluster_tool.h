// SPDX-License-Identifier: MIT
//
// ClusterTool: executes the commands of bloomery-cluster, by calls to etcd and to the servers.
//
// Invariants: the topology is changed by one transaction that compares its revision. A change whose
// outcome is unknown is requested again for up to ten seconds. A refused command has changed
// nothing.
// Thread safety: one thread at a time may use an object. Calls block.
// Source: docs/cluster.md.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/cluster/etcd_client.h"
#include "server/cluster/etcd_keys.h"
#include "server/cluster_tool/node_client.h"
#include "server/cluster_tool/plan.h"
#include "server/cluster_tool/recovery.h"
#include "server/cluster_tool/status.h"

namespace server::cluster {

// The outcome of a command, as lines of text for the user.
struct Done {
  std::string text;
};

class ClusterTool {
 public:
  // Creates the tool. Errors: those of EtcdClient::make, and an invalid name of a cluster.
  static core::Result<std::unique_ptr<ClusterTool>> make(const EtcdOptions& options,
                                                         std::string cluster_name,
                                                         NodeAccess access);

  core::Result<Done> create(const std::vector<Address>& addresses, unsigned replicas);
  core::Result<Done> add(const Address& address, const std::string& shard);
  core::Result<Done> remove(const Address& address);
  // Makes an empty server the leader of a shard whose data are lost. Errors: the user has not
  // accepted the loss, and the errors that every command may have.
  core::Result<Done> replace(const std::string& shard, const Address& address, bool accepts_loss);
  core::Result<Done> fail_over(const std::string& shard, const std::optional<Address>& to,
                               bool force);
  // Asks the servers at `addresses` for the topologies that they keep. Then asks all servers that
  // these topologies name. Puts the newest topology into etcd. If `writes` is false, reports the
  // plan and writes nothing.
  core::Result<Done> recover(const std::vector<Address>& addresses, bool writes);
  // Writes the topology and a snapshot of each shard's leader into a directory that holds no backup
  // yet. Creates the directory if it is missing.
  core::Result<Done> backup(const std::string& directory);
  // Makes a cluster with the topology of a backup. For each shard, in the order of the shards'
  // names, `addresses` has a server that already holds the shard's keys. Empty servers may follow.
  core::Result<Done> restore(const std::string& directory, const std::vector<Address>& addresses);
  core::Result<ClusterStatus> status();

 private:
  // The topology and the live nodes, read at one revision.
  struct Seen {
    std::optional<TopologyVersion> version;
    SlotRecord record;
    std::vector<std::string> alive;
    uint64_t store_revision = 0;  // revision of the whole store of etcd
  };

  ClusterTool(std::string cluster_name, NodeAccess access)
      : name_(std::move(cluster_name)), access_(std::move(access)) {}

  template <class Reply>
  EtcdResult<Reply> wait(const std::function<void(EtcdHandler<Reply>)>& call);
  core::Result<Seen> read();
  // Reads the topology. Errors: there is no cluster of this name, or its slots do not match the
  // recorded checksum.
  core::Result<Seen> read_cluster();
  // Reads etcd before a new cluster is written. Errors: there is a cluster of this name.
  core::Result<Seen> read_without_cluster();
  // Calls `join` for each address, and returns the nodes that these calls return. Errors: the
  // errors of `join`, and two addresses of the same server.
  core::Result<std::vector<Node>> gather(
      const std::vector<Address>& addresses,
      const std::function<core::Result<Node>(size_t index, const Address& address)>& join);
  // Writes the topology of a new cluster. The message for the user has the numbers of shards and
  // nodes, followed by `ending`.
  core::Result<Done> write_first(const core::Result<Topology>& topology, std::string_view ending);
  // Writes the topology and the record of its slots if the topology in etcd still has `revision`.
  // If `revision` is 0, etcd must have no topology. Returns the new revision.
  core::Result<uint64_t> write(const Topology& topology, uint64_t revision);
  // Returns the revision of a write that etcd has not confirmed; nullopt if etcd has not executed
  // the write yet. Errors: another client has changed the topology.
  core::Result<std::optional<uint64_t>> outcome(const std::string& text, uint64_t revision);
  enum class AllowsKeys : uint8_t { kNo, kYes };
  // Returns the node at the address. The server must be in cluster mode, not loading, and
  // registered in this cluster. It must be empty unless `allows_keys` is kYes. The node's address
  // must not be "localhost".
  core::Result<Node> newcomer(const Address& address, const std::vector<std::string>& alive,
                              AllowsKeys allows_keys = AllowsKeys::kNo);
  // Returns the server at `address` as a node. The server should have loaded the shard's snapshot
  // from a backup. The snapshot has `saved_keys` keys. Fails if a key of the server lies outside
  // the shard's slots, or if the server is empty although `saved_keys` is not 0.
  core::Result<Node> restored_leader(const Address& address, const Shard& shard,
                                     uint64_t saved_keys, const std::vector<std::string>& alive);
  // Asks the servers at `addresses`, and all servers in their topologies, for their cluster.json.
  // Errors: a server at one of `addresses` belongs to another cluster. If a topology names a server
  // of another cluster, that server is ignored, because it may have got the address of a former
  // node.
  core::Result<std::vector<KeptFile>> ask_all(std::vector<Address> addresses) const;
  // Returns the address that the topology has for the server at `address`, which the user may have
  // written differently. Asks the server for its id if necessary. Returns `address` if the server
  // is unknown or does not answer.
  Address known_address(const Topology& topology, const Address& address) const;
  // Returns the address at which this tool reaches the node.
  Address address_of(const Node& node) const;
  // Waits until all nodes of the topology have adopted `revision`. Returns lines about the nodes
  // that have not adopted it in time; empty if there are none.
  std::string wait_for_nodes(const Topology& topology, uint64_t revision) const;

  const std::string name_;
  const EtcdKeys keys_{name_};
  const NodeAccess access_;
  boost::asio::io_context io_;
  std::unique_ptr<EtcdClient> etcd_;
};

}  // namespace server::cluster
