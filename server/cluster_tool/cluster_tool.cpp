// SPDX-License-Identifier: MIT
#include "server/cluster_tool/cluster_tool.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/keyspace/slot.h"
#include "core/printable.h"
#include "persistence/files/file.h"
#include "persistence/files/file_system.h"
#include "protocol/arguments.h"
#include "server/cluster/router.h"
#include "server/cluster_tool/backup.h"

namespace server::cluster {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kEtcdPatience{10};
constexpr seconds kNodePatience{15};
constexpr milliseconds kPause{100};
// Pause before a failover is requested again. A leader cancels a handover after a second.
constexpr milliseconds kAskAgain{1500};

core::Error etcd_failure(const EtcdError& error) {
  return {fmt::format("ERR etcd: {}", error.message)};
}

core::Error with_address(const Address& address, std::string_view why) {
  return {fmt::format("ERR {}: {}", core::printable(address.text()), why)};
}

// Counts the server's keys in all slots except `slots`. The number of keys in `slots` may change
// meanwhile, because keys expire.
core::Result<int64_t> keys_outside(NodeClient& client, const SlotRanges& slots) {
  std::vector<std::vector<std::string>> commands;
  for (unsigned slot = 0; slot < core::keyspace::kSlotCount; ++slot) {
    const bool is_own = std::ranges::any_of(slots, [slot](const SlotRange& range) {
      return range.first <= slot && slot <= range.last;
    });
    if (!is_own) commands.push_back({"CLUSTER", "COUNTKEYSINSLOT", std::to_string(slot)});
  }
  const auto counts = client.call_all(commands);
  if (!counts) return counts.error();
  int64_t keys = 0;
  for (const protocol::Reply& count : *counts) keys += count.integer;
  return keys;
}

}  // namespace

core::Result<std::unique_ptr<ClusterTool>> ClusterTool::make(const EtcdOptions& options,
                                                             std::string cluster_name,
                                                             NodeAccess access) {
  if (!is_shard_name(cluster_name)) {
    return core::Error{"ERR a cluster's name is 1 to 32 characters of a-z 0-9 - _"};
  }
  std::unique_ptr<ClusterTool> tool(new ClusterTool(std::move(cluster_name), std::move(access)));
  auto etcd = EtcdClient::make(tool->io_, options);
  if (!etcd) return etcd.error();
  tool->etcd_ = *std::move(etcd);
  return tool;
}

template <class Reply>
EtcdResult<Reply> ClusterTool::wait(const std::function<void(EtcdHandler<Reply>)>& call) {
  std::optional<EtcdResult<Reply>> result;
  call([&](EtcdResult<Reply> arrived) { result = std::move(arrived); });
  while (!result) {
    io_.restart();
    io_.run_one();
  }
  return *std::move(result);
}

core::Result<ClusterTool::Seen> ClusterTool::read() {
  const std::string& prefix = keys_.alive_prefix;
  const EtcdTxn txn{{},
                    {EtcdRange{keys_.topology}, EtcdRange::prefix(prefix), EtcdRange{keys_.slots}}};
  EtcdResult<EtcdTxnReply> result;
  const auto deadline = Clock::now() + kEtcdPatience;
  while (true) {
    result = wait<EtcdTxnReply>([&](auto handler) { etcd_->txn(txn, std::move(handler)); });
    if (result.answered()) break;
    const bool has_no_candidate =
        result.error.code == EtcdCode::kUnavailable && result.outcome == EtcdOutcome::kRefused;
    if (is_refusal(result.error.code) || has_no_candidate || Clock::now() > deadline) {
      return etcd_failure(result.error);
    }
  }
  if (result.reply.responses.size() != txn.success.size())
    return core::Error{"ERR etcd: a reply is missing"};
  Seen seen;
  seen.store_revision = result.reply.revision;
  for (const EtcdKeyValue& kv : result.reply.responses[1].kvs) {
    if (kv.key.starts_with(prefix)) seen.alive.push_back(kv.key.substr(prefix.size()));
  }
  if (const EtcdKeyValue* kv = result.reply.responses[0].find(keys_.topology)) {
    auto topology = parse_topology(kv->value);
    if (!topology) return topology.error();
    const EtcdKeyValue* const record = result.reply.responses[2].find(keys_.slots);
    seen.record.checksum = record == nullptr ? "" : record->value;
    seen.version = TopologyVersion{*std::move(topology), kv->mod_revision};
  }
  return seen;
}

core::Result<ClusterTool::Seen> ClusterTool::read_without_cluster() {
  auto seen = read();
  if (seen && seen->version) {
    return core::Error{fmt::format("ERR cluster '{}' exists already, at revision {}", name_,
                                   seen->version->revision)};
  }
  return seen;
}

core::Result<ClusterTool::Seen> ClusterTool::read_cluster() {
  auto seen = read();
  if (seen && !seen->version) {
    return core::Error{fmt::format(
        "ERR there is no cluster '{}' in etcd; if its topology was lost, `recover` puts it back",
        name_)};
  }
  if (!seen) return seen;
  if (const auto checked = seen->record.check(seen->version->topology, {}); !checked) {
    return core::Error{
        fmt::format("{}; `recover` puts the last valid topology back", checked.error().message)};
  }
  return seen;
}

core::Result<uint64_t> ClusterTool::write(const Topology& topology, uint64_t revision) {
  const std::string text = topology_json(topology);
  const EtcdTxn txn{
      {EtcdCompare::unchanged(keys_.topology, revision)},
      {EtcdPut{keys_.topology, text}, EtcdPut{keys_.slots, slots_checksum(topology)}}};
  const auto deadline = Clock::now() + kEtcdPatience;
  while (Clock::now() < deadline) {
    const auto result =
        wait<EtcdTxnReply>([&](auto handler) { etcd_->txn(txn, std::move(handler)); });
    if (result.answered() && result.reply.succeeded) return result.reply.revision;
    if (result.outcome == EtcdOutcome::kRefused && is_refusal(result.error.code)) {
      return etcd_failure(result.error);
    }
    // etcd may have executed an attempt whose reply was lost. Later attempts then fail because the
    // revision has changed. So the topology in etcd is read and compared.
    const auto found = outcome(text, revision);
    if (!found) return found.error();
    if (*found) return **found;
    std::this_thread::sleep_for(kPause);
  }
  return core::Error{
      "ERR etcd has not confirmed the change, which may still be executed: see status"};
}

core::Result<std::optional<uint64_t>> ClusterTool::outcome(const std::string& text,
                                                           uint64_t revision) {
  const auto result = wait<EtcdRangeReply>(
      [&](auto handler) { etcd_->range({keys_.topology}, std::move(handler)); });
  if (!result.answered()) return std::optional<uint64_t>();
  const EtcdKeyValue* kv = result.reply.find(keys_.topology);
  const uint64_t present = kv == nullptr ? 0 : kv->mod_revision;
  if (present == revision) return std::optional<uint64_t>();
  if (kv != nullptr && kv->value == text) return std::optional<uint64_t>(present);
  return core::Error{"ERR another client has changed the topology meanwhile: try again"};
}

core::Result<Node> ClusterTool::newcomer(const Address& address,
                                         const std::vector<std::string>& alive,
                                         AllowsKeys allows_keys) {
  auto facts = ask_node(address, access_);
  if (!facts) return facts.error();
  if (!facts->in_cluster_mode) {
    return with_address(address, "not in cluster mode: start it with --cluster-enabled yes");
  }
  if (facts->is_loading) return with_address(address, "it is loading its data");
  const int64_t keys = std::max(facts->keys, facts->stored_keys);
  if (keys != 0 && allows_keys == AllowsKeys::kNo) {
    return with_address(address,
                        fmt::format("it holds {} keys; only an empty server may join", keys));
  }
  if (std::ranges::find(alive, facts->node.id) == alive.end()) {
    return with_address(
        address, fmt::format("it has not registered in cluster '{}' at this etcd: look at its "
                             "--cluster-etcd and --cluster-name",
                             name_));
  }
  if (protocol::equals_ignore_case(facts->node.ip, "localhost")) {
    return with_address(address,
                        "clients on other machines cannot use this name: give the server's address "
                        "instead, or set its cluster-announce-ip");
  }
  return facts->node;
}

Address ClusterTool::known_address(const Topology& topology, const Address& address) const {
  if (node_at(topology, address) != nullptr) return address;
  const auto facts = ask_node(address, access_);
  const Node* const node = facts ? topology.node(facts->node.id) : nullptr;
  return node == nullptr ? address : address_of(*node);
}

Address ClusterTool::address_of(const Node& node) const {
  return {node.ip, static_cast<uint16_t>(port_of(node, access_.uses_tls))};
}

std::string ClusterTool::wait_for_nodes(const Topology& topology, uint64_t revision) const {
  const auto deadline = Clock::now() + kNodePatience;
  std::string late;
  for (const Node& node : topology.nodes) {
    const Address address = address_of(node);
    while (true) {
      const auto facts = ask_node(address, access_);
      if (facts && static_cast<uint64_t>(facts->topology_epoch) >= revision) break;
      if (Clock::now() > deadline) {
        late += fmt::format(
            "warning: the new topology is not confirmed by {}\n",
            facts ? address.text() : std::string(core::without_code(facts.error().message)));
        break;
      }
      std::this_thread::sleep_for(kPause);
    }
  }
  return late;
}

core::Result<std::vector<Node>> ClusterTool::gather(
    const std::vector<Address>& addresses,
    const std::function<core::Result<Node>(size_t index, const Address& address)>& join) {
  std::vector<Node> nodes;
  for (const Address& address : addresses) {
    auto node = join(nodes.size(), address);
    if (!node) return node.error();
    if (std::ranges::find(nodes, node->id, &Node::id) != nodes.end()) {
      return with_address(address, "this server is named twice");
    }
    nodes.push_back(*std::move(node));
  }
  return nodes;
}

core::Result<Done> ClusterTool::write_first(const core::Result<Topology>& topology,
                                            std::string_view ending) {
  if (!topology) return topology.error();
  const auto revision = write(*topology, 0);
  if (!revision) return revision.error();
  return Done{fmt::format("cluster {} has {} shards and {} nodes{}, revision {}\n", name_,
                          topology->shards.size(), topology->nodes.size(), ending, *revision) +
              wait_for_nodes(*topology, *revision)};
}

core::Result<Done> ClusterTool::create(const std::vector<Address>& addresses, unsigned replicas) {
  const auto seen = read_without_cluster();
  if (!seen) return seen.error();
  auto nodes = gather(
      addresses, [&](size_t, const Address& address) { return newcomer(address, seen->alive); });
  if (!nodes) return nodes.error();
  return write_first(plan_create(*std::move(nodes), replicas), "");
}

core::Result<Done> ClusterTool::add(const Address& address, const std::string& shard) {
  const auto seen = read_cluster();
  if (!seen) return seen.error();
  auto node = newcomer(address, seen->alive);
  if (!node) return node.error();
  const std::string id = node->id;
  const auto topology = plan_add(seen->version->topology, seen->alive, *std::move(node), shard);
  if (!topology) return topology.error();
  const auto revision = write(*topology, seen->version->revision);
  if (!revision) return revision.error();
  return Done{fmt::format("{} is a replica of shard {} now\n", address.text(),
                          topology->shard_of(id)->name) +
              wait_for_nodes(*topology, *revision)};
}

core::Result<Done> ClusterTool::remove(const Address& address) {
  const auto seen = read_cluster();
  if (!seen) return seen.error();
  const Topology& before = seen->version->topology;
  const auto topology = plan_remove(before, known_address(before, address));
  if (!topology) return topology.error();
  const auto revision = write(*topology, seen->version->revision);
  if (!revision) return revision.error();
  return Done{fmt::format("{} no longer belongs to cluster {}; its server may be stopped\n",
                          address.text(), name_)};
}

core::Result<Done> ClusterTool::replace(const std::string& shard, const Address& address,
                                        bool accepts_loss) {
  const auto seen = read_cluster();
  if (!seen) return seen.error();
  auto node = newcomer(address, seen->alive);
  if (!node) return node.error();
  const auto topology = plan_replace(seen->version->topology, seen->alive, *std::move(node), shard);
  if (!topology) return topology.error();
  if (!accepts_loss) {
    return core::Error{fmt::format(
        "ERR all data of shard {} would be lost: with --accept-loss it gets an empty leader",
        shard)};
  }
  const auto revision = write(*topology, seen->version->revision);
  if (!revision) return revision.error();
  return Done{
      fmt::format("{} leads shard {} now, without its former data\n", address.text(), shard) +
      wait_for_nodes(*topology, *revision)};
}

core::Result<Done> ClusterTool::fail_over(const std::string& shard,
                                          const std::optional<Address>& to, bool force) {
  auto seen = read_cluster();
  if (!seen) return seen.error();
  const Topology before = seen->version->topology;
  const auto known = to ? std::optional(known_address(before, *to)) : std::nullopt;
  const auto target = plan_failover(before, seen->alive, shard, known ? &*known : nullptr, force);
  if (!target) return target.error();
  const Address address = address_of(*target);
  const std::string former = before.shard(shard)->leader;
  std::vector<std::string> command{"CLUSTER", "FAILOVER"};
  if (force) command.emplace_back("FORCE");
  const auto ask = [&]() -> core::Result<> {
    auto client = NodeClient::connect(address, access_);
    if (!client) return client.error();
    return core::without_value(client->call(command));
  };
  if (auto asked = ask(); !asked) return asked.error();
  const auto deadline = Clock::now() + kNodePatience;
  auto ask_again = Clock::now() + kAskAgain;
  while (Clock::now() < deadline) {
    seen = read_cluster();
    if (!seen) return seen.error();
    const Shard* now = seen->version->topology.shard(shard);
    if (now != nullptr && now->leader == target->id) {
      return Done{
          fmt::format("{} leads shard {} now, epoch {}\n", address.text(), shard, now->epoch)};
    }
    // An error is not reported, because the replica may just have taken over. If another node leads
    // now, a further request could depose a leader that the user has not seen.
    if (now != nullptr && now->leader == former && Clock::now() >= ask_again) {
      (void)ask();
      ask_again = Clock::now() + kAskAgain;
    }
    std::this_thread::sleep_for(kPause);
  }
  return with_address(address, "it has not taken over in time; its log says why");
}

core::Result<std::vector<KeptFile>> ClusterTool::ask_all(std::vector<Address> addresses) const {
  const size_t named_count = addresses.size();
  std::vector<KeptFile> kept;
  for (size_t i = 0; i < addresses.size(); ++i) {
    auto file = ask_kept(addresses[i], access_);
    if (file) {
      const auto checked = check_cluster(addresses[i], *file, name_);
      if (!checked && i < named_count) return checked.error();
      if (!checked) file = checked.error();
    }
    kept.push_back({addresses[i], file});
    if (!file) continue;
    for (const Node& node : file->topology.topology.nodes) {
      const Address address = address_of(node);
      if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
    }
  }
  return kept;
}

core::Result<Done> ClusterTool::recover(const std::vector<Address>& addresses, bool writes) {
  const auto seen = read();
  if (!seen) return seen.error();
  const auto kept = ask_all(addresses);
  if (!kept) return kept.error();
  const auto plan = plan_recovery(seen->version, seen->store_revision, *kept, seen->record);
  if (!plan) return plan.error();
  if (!plan->topology) return Done{plan->text};
  if (!writes) return Done{plan->text + "nothing was changed: with --yes it is written\n"};
  const auto revision = write(*plan->topology, seen->version ? seen->version->revision : 0);
  if (!revision) return revision.error();
  return Done{plan->text + fmt::format("etcd has the topology again, revision {}\n", *revision)};
}

core::Result<Done> ClusterTool::backup(const std::string& directory) {
  const auto seen = read_cluster();
  if (!seen) return seen.error();
  persistence::FileSystem& files = persistence::posix_file_system();
  if (auto made = files.make_directory(directory); !made) return made.error();
  const std::string path = fmt::format("{}/{}", directory, kBackupFile);
  if (files.exists(path)) {
    // exists() also returns true if the path cannot be examined. The reason is then the error.
    if (auto size = files.size_bytes(path); !size) return size.error();
    return core::Error{fmt::format("ERR '{}' holds a backup already", core::printable(directory))};
  }
  Backup backup{name_, *seen->version, {}};
  Done done;
  for (const Shard& shard : backup.version.topology.shards) {
    const Address leader = address_of(*backup.version.topology.node(shard.leader));
    ShardBackup saved{shard.name, leader.text(), {}};
    auto fetched =
        fetch_snapshot(leader, access_, shard.epoch, fmt::format("{}/{}", directory, saved.file()));
    if (!fetched) return fetched.error();
    saved.snapshot = *std::move(fetched);
    done.text +=
        fmt::format("shard {}: {} keys, {} bytes, offset {} of {}\n", shard.name,
                    saved.snapshot.keys, saved.snapshot.bytes, saved.snapshot.offset, saved.leader);
    backup.shards.push_back(std::move(saved));
  }
  if (auto written = persistence::write_file_atomically(path, backup_json(backup)); !written) {
    return written.error();
  }
  return done;
}

core::Result<Node> ClusterTool::restored_leader(const Address& address, const Shard& shard,
                                                uint64_t saved_keys,
                                                const std::vector<std::string>& alive) {
  auto node = newcomer(address, alive, AllowsKeys::kYes);
  if (!node) return node;
  const auto facts = ask_node(address, access_);
  if (!facts) return facts.error();
  auto client = NodeClient::connect(address, access_);
  if (!client) return client.error();
  const auto foreign = keys_outside(*client, shard.slots);
  if (!foreign) return foreign.error();
  // The server may have fewer keys than the snapshot, because keys may have expired.
  if (saved_keys != 0 && facts->stored_keys == 0) {
    return with_address(
        address, fmt::format("it is empty, and the snapshot of shard {} has {} keys: start it with "
                             "the snapshot as dump.rdb and with --appendonly no",
                             shard.name, saved_keys));
  }
  if (*foreign != 0) {
    return with_address(
        address, fmt::format("it holds {} keys in slots that do not belong to shard {}", *foreign,
                             shard.name));
  }
  return node;
}

core::Result<Done> ClusterTool::restore(const std::string& directory,
                                        const std::vector<Address>& addresses) {
  const auto text = persistence::read_whole_file(
      persistence::NamedFile(fmt::format("{}/{}", directory, kBackupFile)), 2 * kTopologyBytesMax);
  if (!text) return text.error();
  const auto backup = parse_backup(*text);
  if (!backup) return backup.error();
  const auto seen = read_without_cluster();
  if (!seen) return seen.error();
  const auto& shards = backup->version.topology.shards;
  auto nodes = gather(addresses, [&](size_t index, const Address& address) {
    if (index >= shards.size()) return newcomer(address, seen->alive);
    const Shard& shard = shards[index];
    return restored_leader(address, shard, backup->keys_of(shard.name), seen->alive);
  });
  if (!nodes) return nodes.error();
  return write_first(plan_restore(*backup, *std::move(nodes)), " again");
}

core::Result<ClusterStatus> ClusterTool::status() {
  auto seen = read_cluster();
  if (!seen) return seen.error();
  ClusterStatus status{name_, *std::move(seen->version), std::move(seen->alive), {}};
  for (const Node& node : status.version.topology.nodes) {
    const auto facts = ask_node(address_of(node), access_);
    status.facts.push_back(facts);
  }
  return status;
}

}  // namespace server::cluster
