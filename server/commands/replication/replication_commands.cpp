// SPDX-License-Identifier: MIT
//
// The commands that replicas send: PSYNC, SYNC and REPLCONF.
#include "server/commands/replication/replication_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "server/base/config/host.h"
#include "server/commands/families.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/replication/leader/leader.h"
#include "server/replication/replica_controller.h"
#include "server/replication/stream/replication.h"
#include "server/session/clients.h"

namespace server {
namespace {

using protocol::equals_ignore_case;

constexpr std::string_view kPushesToReplica =
    "ERR a connection that subscribes or tracks keys cannot become a replica";
constexpr std::string_view kPendingOutput = "ERR SYNC and PSYNC are invalid with pending output";

// Turns the connection into a replica's link. The leader then writes to the connection, and this
// command writes no reply. If the connection cannot become a link, replies with the error.
void serve_stream(Context& ctx, const Leader::Request& request) {
  Session& session = ctx.session;
  // As in Redis, PSYNC from a client in MONITOR mode has no effect and no reply.
  if (session.client->peer != Peer::kClient) return;
  // A client with subscriptions or tracking is rejected, because their messages would corrupt the
  // stream.
  if (session.subscriptions.any() || session.subscriptions.tracking() != nullptr) {
    return ctx.reply.error(kPushesToReplica);
  }
  Replication& replication = ctx.services.replication;
  if (ctx.services.replica_controller.is_failing_over()) {
    return ctx.reply.error(kNoSyncInFailover);
  }
  if (replication.is_replica() && !request.take_over && !replication.link_is_up()) {
    return ctx.reply.error(kNoSyncWithoutLeader);
  }
  // Earlier replies must be sent before the stream starts.
  if (ctx.reply.buffer().size() > ctx.request.replies_begin ||
      session.client->output_buffer_bytes > 0) {
    return ctx.reply.error(kPendingOutput);
  }
  const ReplicaTraits& traits = session.replica_role().traits;
  if (traits.wants_no_keys && !traits.takes_eof_mark) {
    return ctx.reply.error("ERR Filtered replica requires EOF capability");
  }
  if (ctx.services.clients.find(session.client->id) == nullptr)
    return ctx.reply.error("ERR this client cannot become a replica");
  session.client->peer = Peer::kReplica;
  session.reply_mode = ReplyMode::kOff;
  if (auto attached = ctx.services.leader.attach(session.client, traits, request); !attached) {
    session.client->peer = Peer::kClient;
    session.reply_mode = ReplyMode::kOn;
    return ctx.reply.error(attached.error().message);
  }
  session.replica_role().on_end = [&leader = ctx.services.leader, id = session.client->id] {
    leader.detach(id);
  };
}

/* PSYNC replicationid offset [FAILOVER] */
void psync(Context& ctx) {
  const auto offset = core::parse_int64(ctx.args[2]);
  if (!offset) return ctx.reply.error(kNotAnInteger);
  Leader::Request request{ctx.args[1], *offset};
  if (ctx.args.size() > 3 && equals_ignore_case(ctx.args[3], "FAILOVER")) {
    request.take_over = [&ctx] {
      return ctx.services.replica_controller.take_over(ctx.args[1], ctx.client.address,
                                                       ctx.locking());
    };
  }
  serve_stream(ctx, request);
}

/* SYNC */
void sync(Context& ctx) {
  serve_stream(ctx, {.is_sync = true});
}

// Parses the value of "rdb-filter-only": the names of the parts that the snapshot must contain.
// Only "functions" is supported. Bloomery has no functions, so the snapshot is empty.
core::Result<> read_filter(ReplicaTraits& traits, std::string_view words) {
  traits.wants_no_keys = true;
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (!word.empty() && !equals_ignore_case(word, "functions")) {
      return core::Error{fmt::format("ERR Unsupported rdb-filter-only option: {}", word)};
    }
  }
  return {};
}

// Reads one option of REPLCONF that describes the replica. Errors: the error reply.
core::Result<> read_trait(ReplicaTraits& traits, std::string_view option, std::string_view value) {
  constexpr size_t kAddressBytesMax = 256;
  const auto number = core::parse_int64(value);
  if (equals_ignore_case(option, "listening-port")) {
    // A replica that serves no clients by TCP sends port 0.
    const auto port = parse_port(value);
    if (!port) return core::Error{std::string(kNotAnInteger)};
    traits.port = *port;
  } else if (equals_ignore_case(option, "ip-address")) {
    if (value.size() >= kAddressBytesMax) {
      return core::Error{
          fmt::format("ERR REPLCONF ip-address provided by replica instance is too long: {} bytes",
                      value.size())};
    }
    if (!value.empty() && !is_host(value)) {
      return core::Error{"ERR REPLCONF ip-address provided by replica instance is not a host"};
    }
    traits.address = value;
  } else if (equals_ignore_case(option, "capa")) {
    // Capabilities that this server does not use are ignored.
    if (equals_ignore_case(value, "eof")) traits.takes_eof_mark = true;
    if (equals_ignore_case(value, "psync2")) traits.knows_psync2 = true;
    if (equals_ignore_case(value, kEffectsCapability)) traits.reads_effects = true;
  } else if (equals_ignore_case(option, "rdb-only")) {
    if (!number) return core::Error{std::string(kNotAnInteger)};
    if (*number != 0 && *number != 1)
      return core::Error{"ERR value is out of range, value must between 0 and 1"};
    traits.wants_snapshot_only = *number == 1;
  } else if (equals_ignore_case(option, "rdb-filter-only")) {
    return read_filter(traits, value);
  } else if (equals_ignore_case(option, "cluster-node")) {
    constexpr size_t kIdSize = 40;
    if (value == kAnyClusterNode) return {};
    if (value.size() != kIdSize) return core::Error{"ERR REPLCONF cluster-node is no node id"};
    traits.node_id = value;
  } else if (!equals_ignore_case(option, "version")) {
    return core::Error{fmt::format("{}{}", kUnknownReplconf, option)};
  }
  return {};
}

// Checks the epoch that a replica of a cluster sends. Errors: this server does not lead the shard
// in that epoch, so its stream is not the one that the replica expects.
core::Result<> check_epoch(const Context& ctx, std::string_view text) {
  const auto epoch = core::parse_int64(text);
  if (!epoch || *epoch < 0) return core::Error{std::string(kNotAnInteger)};
  Replication& replication = ctx.services.replication;
  const uint64_t own = replication.cluster_place().epoch;
  if (!replication.is_replica() && own == static_cast<uint64_t>(*epoch)) return {};
  return core::Error{fmt::format("ERR this node does not lead its shard in epoch {}", *epoch)};
}

// Handles "ACK offset [FACK offset] [append-log fails]", and ignores other options. Sends no reply.
void take_ack(Context& ctx, size_t index) {
  if (ctx.client.peer != Peer::kReplica) return;
  const auto acked = core::parse_int64(ctx.args[index + 1]);
  if (!acked || *acked < 0) return;
  ReplicaAck ack{static_cast<uint64_t>(*acked), std::nullopt};
  for (size_t i = index + 2; i < ctx.args.size(); i += 2) {
    const std::string_view value = ctx.args[i + 1];
    if (equals_ignore_case(ctx.args[i], "fack")) {
      const auto offset = core::parse_int64(value);
      if (offset && *offset >= 0) ack.synced = static_cast<uint64_t>(*offset);
    } else if (equals_ignore_case(ctx.args[i], kAckLogOption)) {
      ack.log_fails = equals_ignore_case(value, kAckLogFails);
    }
  }
  ctx.services.leader.ack(ctx.client.id, ack);
}

/* REPLCONF option value [option value ...] */
void replconf(Context& ctx) {
  if (ctx.args.size() % 2 == 0) return ctx.reply.error(kSyntaxError);
  for (size_t i = 1; i < ctx.args.size(); i += 2) {
    if (equals_ignore_case(ctx.args[i], "ack")) return take_ack(ctx, i);
    // Only a leader sends GETACK, as a part of its stream. The link to the leader handles that
    // GETACK. So a GETACK that reaches this command is ignored.
    if (equals_ignore_case(ctx.args[i], "getack")) return;
    const auto read =
        equals_ignore_case(ctx.args[i], "cluster-epoch")
            ? check_epoch(ctx, ctx.args[i + 1])
            : read_trait(ctx.session.replica_role().traits, ctx.args[i], ctx.args[i + 1]);
    if (!read) return ctx.reply.error(read.error().message);
  }
  ctx.reply.ok();
}

constexpr uint32_t kStream = kAdmin | kNoScript | kNoAsyncLoading | kNoMulti;

const Command kReplicationRows[] = {
    {.name = "psync",
     .arity = -3,
     .flags = kStream,
     .since = "2.8.0",
     .summary = "Asks for the stream of changes from where a replica stopped",
     .complexity = "O(1), and O(N) for a full synchronization where N is the size of all values",
     .syntax = "replicationid offset",
     .handler = psync},
    {.name = "sync",
     .arity = 1,
     .flags = kStream,
     .since = "1.0.0",
     .summary = "Asks for a snapshot and the stream of later changes",
     .complexity = "O(N) where N is the size of all values",
     .handler = sync},
    {.name = "replconf",
     .arity = -1,
     .flags = kAdmin | kNoScript | kLoading | kStale | kAllowBusy,
     .since = "3.0.0",
     .summary = "Describes a replica to its leader",
     .complexity = "O(1)",
     .syntax = "(option value) ...",
     .handler = replconf},
};

}  // namespace

const CommandFamily kReplicationCommands{{.group = "server"}, kReplicationRows};

}  // namespace server
