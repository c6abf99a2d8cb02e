// SPDX-License-Identifier: MIT
//
// REPLICAOF, SLAVEOF: whose replica this server is.
#include "server/commands/context.h"
#include "server/commands/families.h"
#include "server/commands/replica_role.h"

namespace server {
namespace {

constexpr int64_t kPortMax = 65535;

std::string_view state_name(FollowerState state) {
  switch (state) {
    case FollowerState::kNone:
      return "none";
    case FollowerState::kConnect:
      return "connect";
    case FollowerState::kConnecting:
      return "connecting";
    case FollowerState::kHandshake:
      return "handshake";
    case FollowerState::kSync:
      return "sync";
    case FollowerState::kConnected:
      return "connected";
  }
  return "unknown";
}

/* REPLICAOF host port | NO ONE */
void replicaof(Context& ctx) {
  Follower& follower = ctx.services.follower;
  if (protocol::equals_ignore_case(ctx.args[1], "NO") &&
      protocol::equals_ignore_case(ctx.args[2], "ONE")) {
    follower.promote(ctx.locking());
    return ctx.reply.ok();
  }
  if (ctx.session.peer == Peer::kReplica) {
    return ctx.reply.error("ERR Command is not valid when client is a replica.");
  }
  const auto port = core::parse_int64(ctx.args[2]);
  if (!port || *port < 0 || *port > kPortMax) return ctx.reply.error("ERR Invalid master port");
  const Follower::Target target{std::string(ctx.args[1]), static_cast<uint16_t>(*port), false};
  if (!follower.follow(target, ctx.locking())) {
    return ctx.reply.simple("OK Already connected to specified master");
  }
  ctx.reply.ok();
}

constexpr uint32_t kFlags = kAdmin | kNoScript | kStale | kNoAsyncLoading | kWholeKeyspace;

const Command kRows[] = {
    {.name = "replicaof",
     .arity = 3,
     .flags = kFlags,
     .group = "server",
     .since = "5.0.0",
     .summary = "Makes this server the replica of another one, or a leader",
     .syntax = "host port | NO ONE",
     .handler = replicaof},
    {.name = "slaveof",
     .arity = 3,
     .flags = kFlags,
     .group = "server",
     .since = "1.0.0",
     .summary = "Makes this server the replica of another one, or a leader",
     .syntax = "host port | NO ONE",
     .handler = replicaof},
};

}  // namespace

void answer_role_of_replica(Context& ctx) {
  const Follower& follower = ctx.services.follower;
  const auto target = follower.target().value_or(Follower::Target{});
  const FollowerState state = follower.figures().state;
  ctx.reply.array(5);
  ctx.reply.bulk("slave");
  ctx.reply.bulk(target.host);
  ctx.reply.integer(target.port);
  ctx.reply.bulk(state_name(state));
  // How far it is says nothing while it does not follow.
  const bool follows = state == FollowerState::kConnected;
  ctx.reply.integer(follows ? static_cast<int64_t>(ctx.services.replication.offset()) : -1);
}

std::span<const Command> replica_commands() {
  return kRows;
}

}  // namespace server
