// SPDX-License-Identifier: MIT
//
// PSYNC, SYNC, REPLCONF: what a replica says to this server. ROLE, WAIT, WAITAOF: what clients ask
// about replicas.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/clock.h"
#include "persistence/aof/aof_writer.h"
#include "server/commands/server/replica_role.h"
#include "server/commands/services.h"
#include "server/config/host.h"
#include "server/dispatch/context.h"
#include "server/dispatch/families.h"
#include "server/durability/durability.h"
#include "server/process/log.h"
#include "server/replication/leader/leader.h"
#include "server/replication/roles/follower.h"
#include "server/replication/stream/replication.h"
#include "server/session/awaited_reply.h"
#include "server/session/clients.h"

namespace server {
namespace {

using protocol::equals_ignore_case;

constexpr std::string_view kPendingOutput = "ERR SYNC and PSYNC are invalid with pending output";

// Makes the connection a replica's, which gets no reply from here any more; or answers why not.
void serve_stream(Context& ctx, const Leader::Request& request) {
  Session& session = ctx.session;
  if (session.peer != Peer::kClient) return;
  Replication& replication = ctx.services.replication;
  if (ctx.services.follower.failover_state() != Failover::State::kNone) {
    return ctx.reply.error("NOMASTERLINK Can't SYNC while failing over");
  }
  if (replication.is_replica() && !replication.link_is_up()) {
    return ctx.reply.error("NOMASTERLINK Can't SYNC while not connected with my master");
  }
  // What was answered before must leave before the stream does.
  if (ctx.reply.buffer().size() > session.replies_begin || session.output_buffer_bytes.load() > 0) {
    return ctx.reply.error(kPendingOutput);
  }
  if (session.replica.wants_no_keys && !session.replica.takes_eof_mark) {
    return ctx.reply.error("ERR Filtered replica requires EOF capability");
  }
  const auto own = ctx.services.clients.find(session.id);
  if (own == nullptr) return ctx.reply.error("ERR this client cannot become a replica");
  session.peer = Peer::kReplica;
  session.reply_mode = ReplyMode::kOff;
  if (auto attached = ctx.services.leader.attach(own, request); !attached) {
    session.peer = Peer::kClient;
    session.reply_mode = ReplyMode::kOn;
    return ctx.reply.error(attached.error().message);
  }
  session.on_end = [&leader = ctx.services.leader, id = session.id] { leader.detach(id); };
}

// PSYNC … FAILOVER: our leader has paused its writes and wants to follow us. Errors: the reply.
core::Result<> take_over(Context& ctx) {
  Services& services = ctx.services;
  if (!services.replication.is_replica()) {
    return core::Error{"ERR PSYNC FAILOVER can't be sent to a master."};
  }
  if (!equals_ignore_case(ctx.args[1], services.replication.ids().id)) {
    return core::Error{"ERR PSYNC FAILOVER replid must match my replid."};
  }
  log_notice("The leader hands its role over, by {}", ctx.session.address);
  const auto stream = services.replication.hold(ctx.locking());
  services.follower.promote(ctx.locking());
  return {};
}

/* PSYNC replicationid offset [FAILOVER] */
void psync(Context& ctx) {
  const auto offset = core::parse_int64(ctx.args[2]);
  if (!offset) return ctx.reply.error(kNotAnInteger);
  if (ctx.session.peer == Peer::kClient && ctx.args.size() > 3 &&
      equals_ignore_case(ctx.args[3], "FAILOVER")) {
    if (auto taken = take_over(ctx); !taken) return ctx.reply.error(taken.error().message);
  }
  serve_stream(ctx, {ctx.args[1], *offset, false});
}

/* SYNC */
void sync(Context& ctx) {
  serve_stream(ctx, {.is_sync = true});
}

// What follows "rdb-filter-only": the parts wanted, of which only "functions" can be named. There
// are none here, so that every filter leaves nothing.
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

// One pair of REPLCONF that tells of the replica. Errors: the reply.
core::Result<> read_trait(ReplicaTraits& traits, std::string_view option, std::string_view value) {
  constexpr size_t kAddressBytesMax = 256;
  const auto number = core::parse_int64(value);
  if (equals_ignore_case(option, "listening-port")) {
    // 0: it serves no clients by TCP.
    const auto port = number == 0 ? uint16_t{0} : parse_port(value);
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
    // What a replica can besides is of no use here, and no error.
    if (equals_ignore_case(value, "eof")) traits.takes_eof_mark = true;
    if (equals_ignore_case(value, "psync2")) traits.knows_psync2 = true;
    if (equals_ignore_case(value, kEffectsCapability)) traits.reads_effects = true;
  } else if (equals_ignore_case(option, "rdb-only")) {
    if (!number) return core::Error{std::string(kNotAnInteger)};
    traits.wants_snapshot_only = *number == 1;
  } else if (equals_ignore_case(option, "rdb-filter-only")) {
    return read_filter(traits, value);
  } else if (equals_ignore_case(option, "cluster-node")) {
    constexpr size_t kIdSize = 40;
    if (value.size() != kIdSize) return core::Error{"ERR REPLCONF cluster-node is no node id"};
    traits.node_id = value;
  } else if (!equals_ignore_case(option, "version")) {
    return core::Error{fmt::format("ERR Unrecognized REPLCONF option: {}", option)};
  }
  return {};
}

// A replica of a cluster's shard tells in which epoch it follows. Errors: this server does not lead
// in that one, so that its stream would be another one than the replica expects.
core::Result<> check_epoch(const Context& ctx, std::string_view text) {
  const auto epoch = core::parse_int64(text);
  if (!epoch || *epoch < 0) return core::Error{std::string(kNotAnInteger)};
  Replication& replication = ctx.services.replication;
  const uint64_t own = replication.cluster_place().epoch;
  if (!replication.is_replica() && own == static_cast<uint64_t>(*epoch)) return {};
  return core::Error{fmt::format("ERR this node does not lead its shard in epoch {}", *epoch)};
}

// ACK offset [FACK offset]: never answered.
void take_ack(Context& ctx, size_t index) {
  if (ctx.session.peer != Peer::kReplica) return;
  const auto acked = core::parse_int64(ctx.args[index + 1]);
  if (!acked || *acked < 0) return;
  std::optional<uint64_t> synced;
  if (index + 3 < ctx.args.size() && equals_ignore_case(ctx.args[index + 2], "fack")) {
    const auto offset = core::parse_int64(ctx.args[index + 3]);
    if (offset && *offset >= 0) synced = static_cast<uint64_t>(*offset);
  }
  ctx.services.leader.ack(ctx.session.id, static_cast<uint64_t>(*acked), synced);
}

/* REPLCONF option value [option value ...] */
void replconf(Context& ctx) {
  if (ctx.args.size() % 2 == 0) return ctx.reply.error(kSyntaxError);
  for (size_t i = 1; i < ctx.args.size(); i += 2) {
    if (equals_ignore_case(ctx.args[i], "ack")) return take_ack(ctx, i);
    // Only a leader asks, in its stream, which the follower reads.
    if (equals_ignore_case(ctx.args[i], "getack")) return;
    const auto read = equals_ignore_case(ctx.args[i], "cluster-epoch")
                          ? check_epoch(ctx, ctx.args[i + 1])
                          : read_trait(ctx.session.replica, ctx.args[i], ctx.args[i + 1]);
    if (!read) return ctx.reply.error(read.error().message);
  }
  ctx.reply.ok();
}

/* ROLE */
void role(Context& ctx) {
  if (ctx.services.replication.is_replica()) return answer_role_of_replica(ctx);
  Replication& replication = ctx.services.replication;
  auto replicas = ctx.services.leader.describe();
  std::erase_if(replicas,
                [](const auto& replica) { return replica.state != ReplicaState::kOnline; });
  ctx.reply.array(3);
  ctx.reply.bulk("master");
  ctx.reply.integer(static_cast<int64_t>(replication.offset()));
  ctx.reply.array(replicas.size());
  for (const auto& replica : replicas) {
    ctx.reply.array(3);
    ctx.reply.bulk(replica.address);
    ctx.reply.bulk(fmt::to_string(replica.port));
    ctx.reply.bulk(fmt::to_string(replica.acked));
  }
}

// Milliseconds, 0 for ever; an error was answered when there is no value.
std::optional<int64_t> timeout_of(Context& ctx, std::string_view text) {
  const auto timeout_ms = core::parse_int64(text);
  constexpr int64_t kLongestMs = int64_t{1} << 52;
  if (!timeout_ms || *timeout_ms > kLongestMs) {
    ctx.reply.error("ERR timeout is not an integer or out of range");
  } else if (*timeout_ms < 0) {
    ctx.reply.error("ERR timeout is negative");
  } else {
    return timeout_ms;
  }
  return std::nullopt;
}

// The reply to WAIT and WAITAOF: how many replicas have acknowledged what was written before.
class AwaitedAcks final : public AwaitedReply {
 public:
  struct Wanted {
    int64_t replicas = 0;
    bool is_own_log_synced = false;
    bool are_disks_meant = false;  // WAITAOF: replicas have synced, and the reply is an array
  };
  AwaitedAcks(const Services& services, const Wanted& wanted, int64_t timeout_ms)
      : services_(services),
        wanted_(wanted),
        stream_offset_(services.replication.offset()),
        log_offset_(services.journal.end_offset()),
        deadline_us_(timeout_ms > 0 ? services.clock.monotonic_us() + timeout_ms * 1000 : 0) {}

  bool try_answer(protocol::ReplyWriter& reply, bool is_late) override {
    const Leader& leader = services_.leader;
    const int64_t replicas = wanted_.are_disks_meant ? leader.count_synced(stream_offset_)
                                                     : leader.count_acked(stream_offset_);
    // A log without its base brings nothing back.
    const persistence::AofWriter& log = services_.durability.log_writer();
    const bool is_synced = log.is_open() && !log.needs_base() && log.synced_offset() >= log_offset_;
    const bool is_reached =
        replicas >= wanted_.replicas && (is_synced || !wanted_.is_own_log_synced);
    if (!is_reached && !is_late) return false;
    if (wanted_.are_disks_meant) {
      reply.array(2);
      reply.integer(is_synced ? 1 : 0);
    }
    reply.integer(replicas);
    return true;
  }
  int64_t deadline_us() const override { return deadline_us_; }
  bool can_be_unblocked() const override { return true; }

 private:
  const Services& services_;
  const Wanted wanted_;
  const uint64_t stream_offset_;
  const uint64_t log_offset_;  // of the own append log
  const int64_t deadline_us_;
};

void await_acks(Context& ctx, const AwaitedAcks::Wanted& wanted, int64_t timeout_ms) {
  ctx.await(std::make_unique<AwaitedAcks>(ctx.services, wanted, timeout_ms));
  if (ctx.session.awaited) ctx.services.leader.request_acks();
}

/* WAIT numreplicas timeout */
void wait(Context& ctx) {
  if (ctx.services.replication.is_replica()) {
    return ctx.reply.error(
        "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if "
        "a replica is configured to be writable (which is not the default) writes to replicas are "
        "just local and are not propagated.");
  }
  const auto count = core::parse_int64(ctx.args[1]);
  if (!count) return ctx.reply.error(kNotAnInteger);
  const auto timeout_ms = timeout_of(ctx, ctx.args[2]);
  if (timeout_ms) await_acks(ctx, {.replicas = *count}, *timeout_ms);
}

/* WAITAOF numlocal numreplicas timeout */
void waitaof(Context& ctx) {
  if (ctx.services.replication.is_replica()) {
    return ctx.reply.error(
        "ERR WAITAOF cannot be used with replica instances. Please also note that writes to "
        "replicas are just local and are not propagated.");
  }
  const auto local = core::parse_int64(ctx.args[1]);
  const auto count = core::parse_int64(ctx.args[2]);
  if (!local || !count) return ctx.reply.error(kNotAnInteger);
  if (*local < 0 || *local > 1) {
    return ctx.reply.error("ERR value is out of range, value must between 0 and 1");
  }
  if (*count < 0) return ctx.reply.error("ERR value is out of range, must be positive");
  const auto timeout_ms = timeout_of(ctx, ctx.args[3]);
  if (!timeout_ms) return;
  if (*local == 1 && !ctx.services.durability.log_is_on()) {
    return ctx.reply.error(
        "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
  }
  await_acks(ctx, {.replicas = *count, .is_own_log_synced = *local == 1, .are_disks_meant = true},
             *timeout_ms);
}

constexpr uint32_t kStream = kAdmin | kNoScript | kNoAsyncLoading | kNoMulti;

const Command kReplicationRows[] = {
    {.name = "psync",
     .arity = -3,
     .flags = kStream,
     .group = "server",
     .since = "2.8.0",
     .summary = "Asks for the stream of changes from where a replica stopped",
     .complexity = "O(1), and O(N) for a full synchronization where N is the size of all values",
     .syntax = "replicationid offset",
     .handler = psync},
    {.name = "sync",
     .arity = 1,
     .flags = kStream,
     .group = "server",
     .since = "1.0.0",
     .summary = "Asks for a snapshot and the stream of changes behind it",
     .complexity = "O(N) where N is the size of all values",
     .handler = sync},
    {.name = "replconf",
     .arity = -1,
     .flags = kAdmin | kNoScript | kLoading | kStale | kAllowBusy,
     .group = "server",
     .since = "3.0.0",
     .summary = "Tells a leader about its replica",
     .complexity = "O(1)",
     .syntax = "(option value) ...",
     .handler = replconf},
    {.name = "role",
     .arity = 1,
     .flags = kNoScript | kLoading | kStale | kFast,
     .categories = kAdministrative | kDangerous,
     .group = "server",
     .since = "2.8.12",
     .summary = "Tells whether the server leads or follows, and whom",
     .complexity = "O(1)",
     .handler = role},
    {.name = "wait",
     .arity = 3,
     .flags = kNoScript,
     .categories = kConnection,
     .group = "generic",
     .since = "3.0.0",
     .summary = "Waits until replicas have what was written before",
     .complexity = "O(1)",
     .syntax = "numreplicas timeout",
     .tips = "request_policy:all_shards response_policy:agg_min",
     .handler = wait},
    {.name = "waitaof",
     .arity = 4,
     .flags = kNoScript,
     .categories = kConnection,
     .group = "generic",
     .since = "7.2.0",
     .summary = "Waits until disks have what was written before, here and at replicas",
     .complexity = "O(1)",
     .syntax = "numlocal numreplicas timeout",
     .tips = "request_policy:all_shards response_policy:agg_min",
     .handler = waitaof},
};

}  // namespace

int64_t replica_offset(const Context& ctx, std::string_view node_id) {
  for (const Leader::Description& replica : ctx.services.leader.describe()) {
    if (replica.node_id == node_id) return static_cast<int64_t>(replica.acked);
  }
  return 0;
}

std::span<const Command> replication_commands() {
  return kReplicationRows;
}

}  // namespace server
