// SPDX-License-Identifier: MIT
//
// WAIT and WAITAOF wait for replicas, and ROLE returns this server's role in replication.
#include "server/commands/replication/wait_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/clock.h"
#include "server/commands/families.h"
#include "server/commands/replication/replica_role.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/durability/durability.h"
#include "server/replication/leader/leader.h"
#include "server/replication/stream/replication.h"
#include "server/session/awaited_reply.h"
#include "server/session/session.h"

namespace server {
namespace {

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

// Returns the timeout in milliseconds; 0 waits forever. If the timeout is invalid, replies with an
// error and returns nullopt.
std::optional<int64_t> timeout_of(Context& ctx, std::string_view text) {
  const auto timeout_ms = core::parse_int64(text);
  if (!timeout_ms) {
    ctx.reply.error(protocol::kTimeoutNotAnInteger);
  } else if (*timeout_ms < 0) {
    ctx.reply.error(protocol::kNegativeTimeout);
  } else {
    // The deadline in microseconds must fit into 64 bits. No wait takes 140,000 years.
    constexpr int64_t kLongestMs = int64_t{1} << 52;
    return std::min(*timeout_ms, kLongestMs);
  }
  return std::nullopt;
}

WritePosition present_position(const Services& services) {
  return {services.replication.demotions(), services.replication.offset(),
          services.journal.end_offset()};
}

// Returns the position after the session's last write. After a demotion the recorded offsets belong
// to another stream, so all writes until now are meant.
WritePosition last_position(const Services& services, const Session& session) {
  const WritePosition present = present_position(services);
  if (session.has_new_write) return present;
  if (!session.last_write) return {.demotions = present.demotions};
  return session.last_write->demotions == present.demotions ? *session.last_write : present;
}

// AwaitedAcks: the reply to WAIT and WAITAOF, with the number of replicas that have acknowledged
// the client's writes before the command.
class AwaitedAcks final : public AwaitedReply {
 public:
  struct Wanted {
    int64_t replicas = 0;
    bool is_own_log_synced = false;
    // True for WAITAOF, which counts replicas that have synced the writes to disk and replies with
    // an array.
    bool are_disks_meant = false;
  };
  AwaitedAcks(const Services& services, const Session& session, const Wanted& wanted,
              int64_t timeout_ms)
      : services_(services),
        wanted_(wanted),
        position_(last_position(services, session)),
        deadline_us_(timeout_ms > 0 ? services.clock.monotonic_us() + timeout_ms * 1000 : 0) {}

  bool try_answer(protocol::ReplyWriter& reply, bool is_late) override {
    if (services_.replication.demotions() != position_.demotions) {
      reply.error(
          "UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
          "replica?)");
      return true;
    }
    if (wanted_.is_own_log_synced && !services_.durability.log_is_on()) {
      reply.error(kNoLogToWaitFor);
      return true;
    }
    const Leader& leader = services_.leader;
    const int64_t replicas = wanted_.are_disks_meant ? leader.count_synced(position_.stream_offset)
                                                     : leader.count_acked(position_.stream_offset);
    const auto synced = services_.durability.log_synced_offset();
    const bool is_synced = synced && *synced >= position_.log_offset;
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
  // After a demotion, the position no longer identifies the client's writes.
  const WritePosition position_;
  const int64_t deadline_us_;
};

void await_acks(Context& ctx, const AwaitedAcks::Wanted& wanted, int64_t timeout_ms) {
  const bool waits =
      ctx.await(std::make_unique<AwaitedAcks>(ctx.services, ctx.session, wanted, timeout_ms));
  if (waits) ctx.services.leader.request_acks();
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
  if (*count < 0) return ctx.reply.error(protocol::kNotPositive);
  const auto timeout_ms = timeout_of(ctx, ctx.args[3]);
  if (!timeout_ms) return;
  if (*local == 1 && !ctx.services.durability.log_is_on()) {
    return ctx.reply.error(kNoLogToWaitFor);
  }
  await_acks(ctx, {.replicas = *count, .is_own_log_synced = *local == 1, .are_disks_meant = true},
             *timeout_ms);
}

const Command kWaitRows[] = {
    {.name = "role",
     .arity = 1,
     .flags = kNoScript | kLoading | kStale | kFast,
     .categories = kAdministrative | kDangerous,
     .group = "server",
     .since = "2.8.12",
     .summary = "Returns whether the server is a leader or a replica, and of which leader",
     .handler = role},
    {.name = "wait",
     .arity = 3,
     .since = "3.0.0",
     .summary = "Waits until replicas have the connection's writes",
     .syntax = "numreplicas timeout",
     .tips = "request_policy:all_shards response_policy:agg_min",
     .handler = wait},
    {.name = "waitaof",
     .arity = 4,
     .since = "7.2.0",
     .summary = "Waits until the disks here and at replicas have the connection's writes",
     .syntax = "numlocal numreplicas timeout",
     .tips = "request_policy:all_shards response_policy:agg_min",
     .handler = waitaof},
};

}  // namespace

void record_writes(const Services& services, Session& session) {
  session.last_write = present_position(services);
  session.has_new_write = false;
}

int64_t replica_offset(const Context& ctx, std::string_view node_id) {
  for (const Leader::Description& replica : ctx.services.leader.describe()) {
    if (replica.node_id == node_id) return static_cast<int64_t>(replica.acked);
  }
  return 0;
}

const CommandFamily kWaitCommands{
    {.flags = kNoScript, .categories = kConnection, .group = "generic", .complexity = "O(1)"},
    kWaitRows};

}  // namespace server
