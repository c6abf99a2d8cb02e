// SPDX-License-Identifier: MIT
//
// CLUSTER, READONLY, READWRITE, ASKING: this server as a cluster of one node that owns every slot.
//
// Without `cluster-enabled emulated` they are refused in Redis' words, by which clients see that
// this is a single server. Commands that would change the topology are always refused.
#include <fmt/format.h>

#include <limits>
#include <string>
#include <vector>

#include "core/keyspace/slot.h"
#include "server/commands/services.h"
#include "server/config/config.h"
#include "server/dispatch/context.h"
#include "server/dispatch/families.h"
#include "server/process/process_facts.h"
#include "server/process/server_state.h"

namespace server {
namespace {

using core::keyspace::kSlotCount;

// The bus of a real node listens this far above its port; here it is only text.
constexpr unsigned kBusPortDistance = 10000;

// Where clients shall connect to: as announced, else the address that this client has reached.
struct Endpoint {
  std::string host;
  unsigned port = 0;
};

Endpoint endpoint_for(const Context& ctx) {
  const Config& config = ctx.config();
  Endpoint endpoint{"127.0.0.1", config.port()};
  const std::string& address = ctx.session.local_address;
  const size_t colon = address.rfind(':');
  if (!ctx.session.is_unix_socket && colon != std::string::npos) {
    endpoint.host = address.substr(0, colon);
    if (endpoint.host.starts_with('[')) endpoint.host = endpoint.host.substr(1, colon - 2);
    const auto port = core::parse_int64(std::string_view(address).substr(colon + 1));
    if (port) endpoint.port = static_cast<unsigned>(*port);
  }
  if (std::string host = config.text(OptionId::kClusterAnnounceIp); !host.empty()) {
    endpoint.host = std::move(host);
  }
  const OptionId announced_port = ctx.session.socket.tls != nullptr
                                      ? OptionId::kClusterAnnounceTlsPort
                                      : OptionId::kClusterAnnouncePort;
  if (const int64_t port = config.integer(announced_port); port != 0) {
    endpoint.port = static_cast<unsigned>(port);
  }
  return endpoint;
}

// Runs `answer` where a cluster is emulated; else refuses.
template <void (*answer)(Context&)>
void if_emulated(Context& ctx) {
  if (!ctx.environment.state.emulates_cluster()) {
    return ctx.reply.error("ERR This instance has cluster support disabled");
  }
  answer(ctx);
}

const std::string& node_id(const Context& ctx) {
  return ctx.services.facts.run_id;
}

/* CLUSTER INFO */
void cluster_info(Context& ctx) {
  std::string text = "cluster_state:ok\r\n";
  const auto field = [&text](std::string_view name, unsigned value) {
    text += fmt::format("{}:{}\r\n", name, value);
  };
  field("cluster_slots_assigned", kSlotCount);
  field("cluster_slots_ok", kSlotCount);
  field("cluster_slots_pfail", 0);
  field("cluster_slots_fail", 0);
  field("cluster_known_nodes", 1);
  field("cluster_size", 1);
  for (const std::string_view name :
       {"cluster_current_epoch", "cluster_my_epoch", "cluster_stats_messages_sent",
        "cluster_stats_messages_received", "total_cluster_links_buffer_limit_exceeded"}) {
    field(name, 0);
  }
  ctx.reply.verbatim(text, "txt");
}

/* CLUSTER SLOTS */
void cluster_slots(Context& ctx) {
  const Endpoint endpoint = endpoint_for(ctx);
  ctx.reply.array(1);
  ctx.reply.array(3);
  ctx.reply.integer(0);
  ctx.reply.integer(kSlotCount - 1);
  ctx.reply.array(4);
  ctx.reply.bulk(endpoint.host);
  ctx.reply.integer(endpoint.port);
  ctx.reply.bulk(node_id(ctx));
  ctx.reply.map(0);
}

/* CLUSTER SHARDS */
void cluster_shards(Context& ctx) {
  const Endpoint endpoint = endpoint_for(ctx);
  ctx.reply.array(1);
  ctx.reply.map(2);
  ctx.reply.bulk("slots");
  ctx.reply.array(2);
  ctx.reply.integer(0);
  ctx.reply.integer(kSlotCount - 1);
  ctx.reply.bulk("nodes");
  ctx.reply.array(1);
  ctx.reply.map(7);
  ctx.reply.bulk("id");
  ctx.reply.bulk(node_id(ctx));
  ctx.reply.bulk("port");
  ctx.reply.integer(endpoint.port);
  ctx.reply.bulk("ip");
  ctx.reply.bulk(endpoint.host);
  ctx.reply.bulk("endpoint");
  ctx.reply.bulk(endpoint.host);
  ctx.reply.bulk("role");
  ctx.reply.bulk("master");
  ctx.reply.bulk("replication-offset");
  ctx.reply.integer(0);  // no replica of the cluster is compared by it
  ctx.reply.bulk("health");
  ctx.reply.bulk("online");
}

/* CLUSTER NODES */
void cluster_nodes(Context& ctx) {
  const Endpoint endpoint = endpoint_for(ctx);
  ctx.reply.verbatim(
      fmt::format("{} {}:{}@{} myself,master - 0 0 0 connected 0-{}\n", node_id(ctx), endpoint.host,
                  endpoint.port, endpoint.port + kBusPortDistance, kSlotCount - 1),
      "txt");
}

/* CLUSTER MYID */
void cluster_myid(Context& ctx) {
  ctx.reply.bulk(node_id(ctx));
}

/* CLUSTER KEYSLOT key */
void cluster_keyslot(Context& ctx) {
  ctx.reply.integer(core::keyspace::slot_of(ctx.args[2]));
}

// Calls visit(name) for each live key of the slot while it returns true; one stripe is locked at a
// time.
template <class Visit>
void for_each_key_in_slot(const Context& ctx, int64_t slot, Visit&& visit) {
  core::keyspace::ScanOptions options{.count = 1000, .locking = ctx.locking()};
  bool goes_on = true;
  do {
    options.cursor = ctx.keyspace().scan(ctx.database(), options, [&](const Entry& entry) {
      if (!goes_on || entry.expired(ctx.now_ms)) return;
      if (core::keyspace::slot_of(entry.key()) == slot) goes_on = visit(entry.key());
    });
  } while (goes_on && options.cursor != 0);
}

/* CLUSTER COUNTKEYSINSLOT slot */
void cluster_countkeysinslot(Context& ctx) {
  const auto slot = core::parse_int64(ctx.args[2]);
  if (!slot) return ctx.reply.error(kNotAnInteger);
  if (*slot < 0 || *slot >= kSlotCount) return ctx.reply.error("ERR Invalid slot");
  int64_t count = 0;
  for_each_key_in_slot(ctx, *slot, [&](std::string_view) {
    ++count;
    return true;
  });
  ctx.reply.integer(count);
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
  std::vector<std::string> names;
  if (most > 0) {
    for_each_key_in_slot(ctx, *slot, [&](std::string_view name) {
      names.emplace_back(name);
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

// Whether argument 2 is this node's id; else that is answered.
bool names_this_node(Context& ctx) {
  if (protocol::equals_ignore_case(ctx.args[2], node_id(ctx))) return true;
  ctx.reply.error(fmt::format("ERR Unknown node {}", ctx.args[2]));
  return false;
}

/* CLUSTER REPLICAS node-id */
void cluster_replicas(Context& ctx) {
  if (names_this_node(ctx)) ctx.reply.array(0);
}

/* CLUSTER COUNT-FAILURE-REPORTS node-id */
void cluster_count_failure_reports(Context& ctx) {
  if (names_this_node(ctx)) ctx.reply.integer(0);
}

/* CLUSTER BUMPEPOCH */
void cluster_bumpepoch(Context& ctx) {
  ctx.reply.simple("STILL 0");
}

/* CLUSTER FAILOVER [FORCE | TAKEOVER] */
void cluster_failover(Context& ctx) {
  const bool is_right =
      ctx.args.size() == 2 ||
      (ctx.args.size() == 3 && (protocol::equals_ignore_case(ctx.args[2], "FORCE") ||
                                protocol::equals_ignore_case(ctx.args[2], "TAKEOVER")));
  if (!is_right) return ctx.reply.error(kSyntaxError);
  ctx.reply.error("ERR You should send CLUSTER FAILOVER to a replica");
}

/* CLUSTER SAVECONFIG | READONLY | READWRITE | ASKING */
// Nothing to save, no replica to read from, no slot on its way.
void accept(Context& ctx) {
  ctx.reply.ok();
}

/* CLUSTER ADDSLOTS | MEET | SETSLOT … */
void topology_refusal(Context& ctx) {
  ctx.reply.error("ERR the cluster is emulated by one server, which owns every slot");
}

// A question of clients.
template <void (*answer)(Context&)>
constexpr Command question(std::string_view name, std::string_view summary,
                           std::string_view tips = kVaryingOutput) {
  return {.name = name,
          .arity = 2,
          .flags = kStale,
          .group = "cluster",
          .since = "3.0.0",
          .summary = summary,
          .complexity = "O(1)",
          .tips = tips,
          .handler = if_emulated<answer>};
}

// What an administrator of a real cluster does.
template <void (*answer)(Context&) = topology_refusal>
constexpr Command order(std::string_view name, int arity, std::string_view summary,
                        std::string_view syntax = {}) {
  return {.name = name,
          .arity = arity,
          .flags = kAdmin | kStale | kNoAsyncLoading,
          .group = "cluster",
          .since = "3.0.0",
          .summary = summary,
          .complexity = "O(1)",
          .syntax = syntax,
          .handler = if_emulated<answer>};
}

constexpr Command newer(Command row, std::string_view since) {
  row.since = since;
  return row;
}

// A question with arguments.
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

// About another node.
template <void (*answer)(Context&)>
constexpr Command node_question(std::string_view name, std::string_view summary) {
  Command row = question<answer>(name, summary);
  row.arity = 3;
  row.flags = kAdmin | kStale;
  row.syntax = "node-id";
  return row;
}

constexpr Command reset_row() {
  Command row = order("reset", -2, "Is refused: would forget the cluster", "[HARD | SOFT]");
  row.flags = kAdmin | kStale | kNoScript;
  return row;
}

constexpr Command bumpepoch_row() {
  Command row = order<cluster_bumpepoch>("bumpepoch", 2, "Returns the epoch, which stays");
  row.tips = kVaryingOutput;
  return row;
}

constexpr Command kClusterSubcommands[] = {
    order("addslots", -3, "Is refused: would take slots", "slot:integer ..."),
    newer(order("addslotsrange", -4, "Is refused: would take ranges of slots",
                "(start-slot:integer end-slot:integer) ..."),
          "7.0.0"),
    bumpepoch_row(),
    node_question<cluster_count_failure_reports>("count-failure-reports",
                                                 "Counts who reports a node as failing: none"),
    through_all_keys(question_of<cluster_countkeysinslot>("countkeysinslot", 3, "slot:integer",
                                                          "Counts the keys of a slot")),
    order("delslots", -3, "Is refused: would give slots away", "slot:integer ..."),
    newer(order("delslotsrange", -4, "Is refused: would give ranges of slots away",
                "(start-slot:integer end-slot:integer) ..."),
          "7.0.0"),
    order<cluster_failover>("failover", -2, "Is refused: no replica of the cluster is here",
                            "[FORCE | TAKEOVER]"),
    order("flushslots", 2, "Is refused: would give all slots away"),
    order("forget", 3, "Is refused: would forget a node", "node-id"),
    through_all_keys(question_of<cluster_getkeysinslot>(
        "getkeysinslot", 4, "slot:integer count:integer", "Lists keys of a slot", kVaryingOutput)),
    question<cluster_info>("info", "Tells how the cluster is"),
    question_of<cluster_keyslot>("keyslot", 3, "key:string", "Returns the slot of a key"),
    newer(question<cluster_links>("links", "Lists links to other nodes: none"), "7.0.0"),
    order("meet", -4, "Is refused: would introduce another node",
          "ip port:integer [cluster-bus-port:integer]"),
    question<cluster_myid>("myid", "Returns the id of the node, which is that of the process", ""),
    newer(question<cluster_myid>("myshardid", "Returns the id of the shard, which is the node's"),
          "7.2.0"),
    question<cluster_nodes>("nodes", "Describes the one node"),
    newer(node_question<cluster_replicas>("replicas", "Lists a node's replicas: none"), "5.0.0"),
    order("replicate", 3, "Is refused: would make the node a replica", "node-id"),
    reset_row(),
    order<accept>("saveconfig", 2, "Does nothing: no state of the cluster is kept"),
    order("set-config-epoch", 3, "Is refused: would set the epoch", "config-epoch:integer"),
    order("setslot", -4, "Is refused: would move a slot",
          "slot:integer (IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE)"),
    newer(question<cluster_shards>("shards", "Returns slots and nodes by shard"), "7.0.0"),
    node_question<cluster_replicas>("slaves", "Lists a node's replicas: none"),
    question<cluster_slots>("slots", "Returns slots by node"),
};

template <uint32_t flags>
constexpr Command connection_row(std::string_view name, std::string_view summary) {
  return {.name = name,
          .arity = 1,
          .flags = flags,
          .categories = kConnection,
          .group = "cluster",
          .since = "3.0.0",
          .summary = summary,
          .complexity = "O(1)",
          .handler = if_emulated<accept>};
}

const Command kClusterRows[] = {
    connection_row<kFast>("asking", "Follows a redirection, of which there are none"),
    {.name = "cluster",
     .arity = -2,
     .group = "cluster",
     .since = "3.0.0",
     .summary = "Groups the commands about clusters, of which this server can play one",
     .complexity = "Depends on subcommand",
     .subcommands = kClusterSubcommands},
    connection_row<kLoading | kStale | kFast>("readonly", "Allows reads from a node's replicas"),
    connection_row<kLoading | kStale | kFast>("readwrite", "Ends READONLY"),
};

}  // namespace

std::span<const Command> cluster_commands() {
  return kClusterRows;
}

}  // namespace server
