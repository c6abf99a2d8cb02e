// SPDX-License-Identifier: MIT
//
// View: the cluster as this server sees it: one version of the topology, which of its nodes are
// alive, and which node this server is. A cluster of one that is emulated is a View, too.
//
// Invariants: never changes once made. With a topology each slot has exactly one shard; without
// one there is no shard, no node, and nothing is owned.
// Thread safety: constant.
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
  // No topology is known yet.
  explicit View(std::string own_id);
  // `alive`: ids of the nodes whose lease holds. version.topology: one that check_topology()
  // accepts. `fault`: of the topology in etcd.
  View(std::string own_id, TopologyVersion version, std::vector<std::string> alive,
       TopologyFault fault = TopologyFault::kNone);
  // Returns a view in which this server alone owns all slots. Its node has no address: a client
  // reaches it at the address that the client has already used.
  static std::shared_ptr<const View> emulated(std::string own_id);

  bool is_emulated() const { return is_emulated_; }
  bool has_topology() const { return !shards().empty(); }
  uint64_t revision() const { return version_.revision; }
  const Topology& topology() const { return version_.topology; }
  const std::vector<Shard>& shards() const { return version_.topology.shards; }
  const std::vector<Node>& nodes() const { return version_.topology.nodes; }

  const std::string& own_id() const { return own_id_; }
  // Null if the topology does not name this server.
  const Node* own_node() const { return own_node_; }
  const Shard* own_shard() const { return own_shard_; }
  bool leads() const { return leads_; }

  // REQUIRES: has_topology(), slot < kSlotCount.
  const Shard& shard_of(unsigned slot) const { return shards()[shard_of_slot_[slot]]; }
  const Node& leader_of(const Shard& shard) const { return *topology().node(shard.leader); }
  // Whether this server leads the slot's shard.
  bool leads(unsigned slot) const { return led_slots_[slot]; }
  const core::keyspace::SlotSet& led_slots() const { return led_slots_; }
  // Whether the slot belongs to the own shard, whichever member leads it.
  bool owns(unsigned slot) const { return own_shard_ != nullptr && &shard_of(slot) == own_shard_; }
  bool owns_all() const { return own_shard_ != nullptr && shards().size() == 1; }
  bool is_alive(std::string_view node_id) const;
  const std::vector<std::string>& alive() const { return alive_; }
  // The fault of the topology in etcd; topology() is the last one that was valid.
  TopologyFault fault() const { return fault_; }

 private:
  std::string own_id_;
  TopologyVersion version_;
  std::vector<std::string> alive_;  // sorted
  const Node* own_node_ = nullptr;
  const Shard* own_shard_ = nullptr;
  bool leads_ = false;
  bool is_emulated_ = false;
  std::array<uint16_t, core::keyspace::kSlotCount> shard_of_slot_{};  // indexes of shards()
  core::keyspace::SlotSet led_slots_;
  TopologyFault fault_ = TopologyFault::kNone;

 public:
  // Not copyable, because members point to each other.
  View(const View&) = delete;
  View& operator=(const View&) = delete;
};

}  // namespace server::cluster
