// SPDX-License-Identifier: MIT
//
// View: the cluster as this server sees it: one version of the topology, the ids of its live nodes,
// and this server's own id. With cluster emulation, the View has one node.
//
// Invariants: a View never changes. If it has a topology, each slot belongs to exactly one shard.
// If it has no topology, it has no shards and no nodes, and this server owns no slot.
// Thread safety: any thread may use a View, because it is constant.
// Source: the clients' protocol,
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyspace/slot.h"
#include "server/cluster/topology.h"

namespace server::cluster {

class View {
 public:
  // Creates a view without a topology.
  explicit View(std::string own_id);
  // `alive` lists the ids of the nodes whose lease in etcd has not expired. `version.topology` is
  // the last valid topology. `fault` is the fault of etcd's present topology, if any. REQUIRES:
  // check_topology() accepts version.topology, except for addresses that emulated() leaves empty.
  View(std::string own_id, TopologyVersion version, std::vector<std::string> alive,
       TopologyFault fault = TopologyFault::kNone);
  // Returns a view in which this server alone owns all slots. The node has no address in the view:
  // a client continues to use the address of its present connection.
  static std::shared_ptr<const View> emulated(std::string own_id);

  bool is_emulated() const { return is_emulated_; }
  bool has_topology() const { return !shards().empty(); }
  uint64_t revision() const { return version_.revision; }
  const Topology& topology() const { return version_.topology; }
  const std::vector<Shard>& shards() const { return version_.topology.shards; }
  const std::vector<Node>& nodes() const { return version_.topology.nodes; }

  const std::string& own_id() const { return own_id_; }
  // Returns this server's node; null if the topology does not name it.
  const Node* own_node() const { return own_node_; }
  const Shard* own_shard() const { return own_shard_; }
  bool leads() const { return leads_; }

  // Returns the shard that owns the slot. REQUIRES: has_topology(), slot < kSlotCount.
  const Shard& shard_of(unsigned slot) const { return shards()[shard_of_slot_[slot]]; }
  const Node& leader_of(const Shard& shard) const { return *topology().node(shard.leader); }
  // Returns whether this server leads the slot's shard.
  bool leads(unsigned slot) const { return led_slots_[slot]; }
  const core::keyspace::SlotSet& led_slots() const { return led_slots_; }
  // Returns whether the slot belongs to this server's shard, whichever member leads it.
  bool owns(unsigned slot) const { return own_shard_ != nullptr && &shard_of(slot) == own_shard_; }
  bool owns_all() const { return own_shard_ != nullptr && shards().size() == 1; }
  bool is_alive(std::string_view node_id) const;
  const std::vector<std::string>& alive() const { return alive_; }
  // Returns why the topology that etcd has now cannot be used; kNone if it can. topology() always
  // returns the last usable topology.
  TopologyFault fault() const { return fault_; }

 private:
  std::string own_id_;
  TopologyVersion version_;
  std::vector<std::string> alive_;  // sorted ids of the live nodes
  const Node* own_node_ = nullptr;
  const Shard* own_shard_ = nullptr;
  bool leads_ = false;
  bool is_emulated_ = false;
  // Index in shards() of each slot's shard.
  std::array<uint16_t, core::keyspace::kSlotCount> shard_of_slot_{};
  core::keyspace::SlotSet led_slots_;
  TopologyFault fault_ = TopologyFault::kNone;

 public:
  // A View cannot be copied, because own_node_ and own_shard_ point into version_.
  View(const View&) = delete;
  View& operator=(const View&) = delete;
};

}  // namespace server::cluster
