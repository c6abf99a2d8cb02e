// SPDX-License-Identifier: MIT
//
// CLUSTER, READONLY, READWRITE and ASKING, for this server as a node of a cluster.
//
// Outside a cluster these commands answer with Redis' error, by which clients recognize a single
// server. Commands that would change the topology are rejected, except CLUSTER FAILOVER.
#include "server/commands/replication/cluster_commands.h"

#include <fmt/format.h>

#include <string>
#include <unordered_set>

#include "core/keyspace/key_hash.h"
#include "core/keyspace/slot.h"
#include "core/keyspace/slot_keys.h"
#include "server/base/process/server_state.h"
#include "server/cluster/election/member.h"
#include "server/cluster/view.h"
#include "server/commands/families.h"
#include "server/commands/replication/cluster_description.h"
#include "server/commands/replication/clusterx_commands.h"
#include "server/dispatch/context.h"
#include "server/dispatch/key_routing.h"

namespace server {
namespace {

using core::keyspace::kSlotCount;

// Runs `answer` in a cluster; otherwise replies with an error.
template <void (*answer)(Context&)>
void in_cluster(Context& ctx) {
  if (!ctx.environment.state.is_in_cluster()) {
    return ctx.reply.error(kClusterDisabled);
  }
  answer(ctx);
}

/* CLUSTER INFO */
void cluster_info(Context& ctx) {
  ctx.reply.verbatim(cluster_info_text(view_of(ctx), ctx.environment.cluster), "txt");
}

/* CLUSTER NODES */
void cluster_nodes(Context& ctx) {
  const cluster::View& view = view_of(ctx);
  std::string text;
  for (const cluster::Node& node : view.nodes()) {
    text += node_line(ctx, node, WithSlots::kYes) + "\n";
  }
  if (view.own_node() == nullptr) {
    // The reply to CLUSTER NODES must list this node, because redis-cli crashes if the list lacks
    // the node that it asked.
    cluster::Node self;
    self.id = view.own_id();
    text += node_line(ctx, self, WithSlots::kNo) + "\n";
  }
  ctx.reply.verbatim(text, "txt");
}

/* CLUSTER MYID */
void cluster_myid(Context& ctx) {
  ctx.reply.bulk(view_of(ctx).own_id());
}

// Returns the id of the shard with this name. As in Redis, an id has 40 hexadecimal digits.
std::string shard_id(std::string_view name) {
  using core::keyspace::hash_key;
  return fmt::format("{:016x}{:016x}{:08x}", hash_key(name, 0), hash_key(name, 1),
                     static_cast<uint32_t>(hash_key(name, 2)));
}

/* CLUSTER MYSHARDID */
void cluster_myshardid(Context& ctx) {
  const cluster::View& view = view_of(ctx);
  if (view.is_emulated() || view.own_shard() == nullptr) return cluster_myid(ctx);
  ctx.reply.bulk(shard_id(view.own_shard()->name));
}

/* CLUSTER KEYSLOT key */
void cluster_keyslot(Context& ctx) {
  ctx.reply.integer(core::keyspace::slot_of(ctx.args[2]));
}

/* CLUSTER COUNTKEYSINSLOT slot */
// As in Redis, expired keys count until they are deleted.
void cluster_countkeysinslot(Context& ctx) {
  const auto slot = core::parse_int64(ctx.args[2]);
  if (!slot) return ctx.reply.error(kNotAnInteger);
  if (*slot < 0 || *slot >= kSlotCount) return ctx.reply.error("ERR Invalid slot");
  const uint64_t count = ctx.keyspace().slot_sizes()->at(static_cast<unsigned>(*slot));
  ctx.reply.integer(static_cast<int64_t>(count));
}

/* CLUSTER GETKEYSINSLOT slot count */
void cluster_getkeysinslot(Context& ctx) {
  const auto slot = core::parse_int64(ctx.args[2]);
  const auto count = core::parse_int64(ctx.args[3]);
  if (!slot || !count) return ctx.reply.error(kNotAnInteger);
  if (*slot < 0 || *slot >= kSlotCount || *count < 0) {
    return ctx.reply.error("ERR Invalid slot or number of keys");
  }
  const auto most = static_cast<uint64_t>(*count);
  std::unordered_set<std::string> names;  // a set, because the scan may visit a key twice
  if (most > 0) {
    core::keyspace::for_each_in_slot(ctx.keyspace(), static_cast<unsigned>(*slot), ctx.locking(),
                                     [&](const Entry& entry) {
                                       if (!entry.expired(ctx.now_ms)) names.emplace(entry.key());
                                       return names.size() < most;
                                     });
  }
  ctx.reply.array(names.size());
  for (const std::string& name : names) ctx.reply.bulk(name);
}

/* CLUSTER LINKS */
void cluster_links(Context& ctx) {
  ctx.reply.array(0);
}

// Returns the node that argument 2 names. If there is none, replies with an error and returns null.
const cluster::Node* named_node(Context& ctx) {
  const cluster::Node* const node = view_of(ctx).topology().node(ctx.args[2]);
  if (node == nullptr) ctx.reply.error(fmt::format("ERR Unknown node {}", ctx.args[2]));
  return node;
}

/* CLUSTER REPLICAS node-id */
void cluster_replicas(Context& ctx) {
  const cluster::Node* const node = named_node(ctx);
  if (node == nullptr) return;
  const cluster::View& view = view_of(ctx);
  const cluster::Shard* const shard = view.topology().shard_of(node->id);
  if (shard == nullptr || shard->leader != node->id) {
    return ctx.reply.error("ERR The specified node is not a master");
  }
  ctx.reply.array(shard->members.size() - 1);
  for (const std::string& id : shard->members) {
    if (id == shard->leader) continue;
    ctx.reply.bulk(node_line(ctx, *view.topology().node(id), WithSlots::kNo));
  }
}

/* CLUSTER COUNT-FAILURE-REPORTS node-id */
void cluster_count_failure_reports(Context& ctx) {
  if (named_node(ctx) != nullptr) ctx.reply.integer(0);
}

/* CLUSTER BUMPEPOCH */
void cluster_bumpepoch(Context& ctx) {
  const cluster::Shard* const shard = view_of(ctx).own_shard();
  ctx.reply.simple(fmt::format("STILL {}", shard == nullptr ? 0 : shard->epoch));
}

/* CLUSTER FAILOVER [FORCE | TAKEOVER] */
void cluster_failover(Context& ctx) {
  if (ctx.args.size() > 3) {
    return ctx.reply.error(protocol::wrong_subcommand(ctx.args[1], "CLUSTER"));
  }
  const bool is_right = ctx.args.size() == 2 ||
                        protocol::equals_ignore_case(ctx.args[2], "FORCE") ||
                        protocol::equals_ignore_case(ctx.args[2], "TAKEOVER");
  if (!is_right) return ctx.reply.error(kSyntaxError);
  if (view_of(ctx).leads()) {
    return ctx.reply.error(cluster::kFailoverNeedsReplica);
  }
  if (ctx.in_exec) {
    return ctx.reply.error("ERR CLUSTER FAILOVER waits for the cluster, which EXEC cannot do");
  }
  fail_over(ctx, ctx.args.size() == 3);
}

/* READONLY | READWRITE */
void read_replicas(Context& ctx, bool reads) {
  ctx.client.reads_replicas = reads;
  ctx.reply.ok();
}

/* CLUSTER SAVECONFIG | ASKING */
// CLUSTER SAVECONFIG does nothing, because the topology is in etcd or, in an emulated cluster,
// nowhere. ASKING replies OK, because no slot is ever migrated.
void accept(Context& ctx) {
  ctx.reply.ok();
}

/* CLUSTER ADDSLOTS | MEET | SETSLOT … */
void topology_refusal(Context& ctx) {
  ctx.reply.error(view_of(ctx).is_emulated()
                      ? "ERR the cluster is emulated by one server, which owns every slot"
                      : "ERR the topology is kept in etcd: use bloomery-cluster");
}

// Returns the command-table row of a CLUSTER subcommand without arguments. The subcommand is not an
// admin command, so ordinary clients may call it.
template <void (*answer)(Context&)>
constexpr Command question(std::string_view name, std::string_view summary,
                           std::string_view tips = kVaryingOutput) {
  return {.name = name,
          .arity = 2,
          .flags = kStale,
          .summary = summary,
          .tips = tips,
          .handler = in_cluster<answer>};
}

// Returns the table row of a subcommand by which administrators change a Redis Cluster.
template <void (*answer)(Context&) = topology_refusal>
constexpr Command order(std::string_view name, int arity, std::string_view summary,
                        std::string_view syntax = {}, std::string_view tips = {}) {
  return {.name = name,
          .arity = arity,
          .flags = kAdmin | kStale | kNoAsyncLoading,
          .summary = summary,
          .syntax = syntax,
          .tips = tips,
          .handler = in_cluster<answer>};
}

constexpr Command newer(Command row, std::string_view since) {
  row.since = since;
  return row;
}

// Returns the table row of a subcommand that clients may call and that takes arguments.
template <void (*answer)(Context&)>
constexpr Command question_of(std::string_view name, int arity, std::string_view syntax,
                              std::string_view summary, std::string_view tips = {}) {
  Command row = question<answer>(name, summary, tips);
  row.arity = arity;
  row.syntax = syntax;
  return row;
}

constexpr Command through_all_keys(Command row) {
  row.flags |= kWholeKeyspace;
  row.complexity = "O(N) where N is the number of keys";
  return row;
}

// Returns the table row of a CLUSTER subcommand whose argument is the id of a node.
template <void (*answer)(Context&)>
constexpr Command node_question(std::string_view name, std::string_view summary) {
  Command row = question<answer>(name, summary);
  row.arity = 3;
  row.flags = kAdmin | kStale;
  row.syntax = "node-id";
  return row;
}

constexpr Command reset_row() {
  Command row = order("reset", -2, "Always fails: would reset the cluster", "[HARD | SOFT]");
  row.flags = kAdmin | kStale | kNoScript;
  return row;
}

constexpr Command kClusterSubcommands[] = {
    order("addslots", -3, "Always fails: would assign slots", "slot:integer ..."),
    newer(order("addslotsrange", -4, "Always fails: would assign ranges of slots",
                "(start-slot:integer end-slot:integer) ..."),
          "7.0.0"),
    order<cluster_bumpepoch>("bumpepoch", 2, "Returns the epoch, which does not change", "",
                             kVaryingOutput),
    node_question<cluster_count_failure_reports>("count-failure-reports",
                                                 "Returns 0: nodes do not report each other"),
    through_all_keys(question_of<cluster_countkeysinslot>("countkeysinslot", 3, "slot:integer",
                                                          "Counts the keys of a slot")),
    order("delslots", -3, "Always fails: would remove slots", "slot:integer ..."),
    newer(order("delslotsrange", -4, "Always fails: would remove ranges of slots",
                "(start-slot:integer end-slot:integer) ..."),
          "7.0.0"),
    order<cluster_failover>("failover", -2, "Makes a replica the leader of its shard",
                            "[FORCE | TAKEOVER]"),
    order("flushslots", 2, "Always fails: would remove all slots"),
    order("forget", 3, "Always fails: would remove a node", "node-id"),
    through_all_keys(question_of<cluster_getkeysinslot>(
        "getkeysinslot", 4, "slot:integer count:integer", "Lists keys of a slot", kVaryingOutput)),
    question<cluster_info>("info", "Returns the state of the cluster"),
    question_of<cluster_keyslot>("keyslot", 3, "key:string", "Returns the slot of a key"),
    newer(question<cluster_links>("links", "Lists links to other nodes: none"), "7.0.0"),
    order("meet", -4, "Always fails: would add another node",
          "ip port:integer [cluster-bus-port:integer]"),
    question<cluster_myid>("myid", "Returns the id of the node", ""),
    newer(question<cluster_myshardid>("myshardid", "Returns the id of the node's shard"), "7.2.0"),
    question<cluster_nodes>("nodes", "Describes the nodes"),
    newer(node_question<cluster_replicas>("replicas", "Lists a node's replicas"), "5.0.0"),
    order("replicate", 3, "Always fails: would make the node a replica", "node-id"),
    reset_row(),
    order<accept>("saveconfig", 2, "Does nothing: this server needs no saved configuration"),
    order("set-config-epoch", 3, "Always fails: would set the epoch", "config-epoch:integer"),
    order("setslot", -4, "Always fails: would move a slot",
          "slot:integer (IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE)"),
    newer(question<write_shards>("shards", "Returns slots and nodes by shard"), "7.0.0"),
    node_question<cluster_replicas>("slaves", "Lists a node's replicas"),
    question<write_slots>("slots", "Returns slots by node"),
};

template <void (*answer)(Context&), uint32_t flags>
constexpr Command connection_row(std::string_view name, std::string_view summary) {
  return {.name = name,
          .arity = 1,
          .flags = flags,
          .categories = kConnection,
          .summary = summary,
          .handler = in_cluster<answer>};
}

const Command kClusterRows[] = {
    connection_row<accept, kFast>("asking", "Follows a redirection, of which there are none"),
    {.name = "cluster",
     .summary = "Groups the commands about clusters",
     .subcommands = kClusterSubcommands},
    connection_row<calls<read_replicas, true>, kLoading | kStale | kFast>(
        "readonly", "Allows reads from a node's replicas"),
    connection_row<calls<read_replicas, false>, kLoading | kStale | kFast>("readwrite",
                                                                           "Ends READONLY"),
};

}  // namespace

const CommandFamily kClusterCommands{{.group = "cluster", .since = "3.0.0", .complexity = "O(1)"},
                                     kClusterRows};

}  // namespace server
