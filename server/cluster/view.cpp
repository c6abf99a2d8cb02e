// SPDX-License-Identifier: MIT
#include "server/cluster/view.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace server::cluster {
namespace {

TopologyVersion topology_of_one(const std::string& id) {
  TopologyVersion version;
  version.topology.nodes.emplace_back().id = id;
  Shard& shard = version.topology.shards.emplace_back();
  shard.name = "emulated";
  shard.leader = id;
  shard.members = shard.insync = {id};
  shard.slots = {{0, core::keyspace::kSlotCount - 1}};
  return version;
}

}  // namespace

View::View(std::string own_id) : own_id_(std::move(own_id)) {}

View::View(std::string own_id, TopologyVersion version, std::vector<std::string> alive,
           TopologyFault fault)
    : own_id_(std::move(own_id)),
      version_(std::move(version)),
      alive_(std::move(alive)),
      fault_(fault) {
  std::ranges::sort(alive_);
  own_node_ = topology().node(own_id_);
  own_shard_ = topology().shard_of(own_id_);
  leads_ = own_shard_ != nullptr && own_shard_->leader == own_id_;
  for (size_t i = 0; i < shards().size(); ++i) {
    assert(topology().node(shards()[i].leader) != nullptr);
    for (const SlotRange& range : shards()[i].slots) {
      for (unsigned slot = range.first; slot <= range.last; ++slot) {
        shard_of_slot_[slot] = static_cast<uint16_t>(i);
        led_slots_[slot] = leads_ && &shards()[i] == own_shard_;
      }
    }
  }
}

std::shared_ptr<const View> View::emulated(std::string own_id) {
  TopologyVersion version = topology_of_one(own_id);
  const auto view = std::make_shared<View>(own_id, std::move(version), std::vector{own_id});
  view->is_emulated_ = true;
  return view;
}

bool View::is_alive(std::string_view node_id) const {
  return std::ranges::binary_search(alive_, node_id);
}

}  // namespace server::cluster
