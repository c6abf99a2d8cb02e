// SPDX-License-Identifier: MIT
//
// REPLICAOF and SLAVEOF choose the leader of this server. FAILOVER hands the leader's role to a
// replica.
#include <iterator>
#include <span>
#include <string_view>

#include "server/base/config/host.h"
#include "server/commands/families.h"
#include "server/commands/replication/replica_role.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/replication/failover.h"
#include "server/replication/replica_controller.h"
#include "server/replication/stream/replication.h"

namespace server {
namespace {

// The names of the states, in the order of ReplicaLinkState.
constexpr std::string_view kStateNames[] = {"none",      "connect", "connecting",
                                            "handshake", "sync",    "connected"};
static_assert(std::size(kStateNames) == static_cast<size_t>(ReplicaLinkState::kConnected) + 1);

/* REPLICAOF host port | NO ONE */
void replicaof(Context& ctx) {
  if (ctx.environment.state.is_in_cluster()) {
    return ctx.reply.error("ERR REPLICAOF not allowed in cluster mode.");
  }
  ReplicaController& replica_controller = ctx.services.replica_controller;
  const auto stream = ctx.services.replication.hold(ctx.locking());
  if (replica_controller.is_failing_over()) {
    return ctx.reply.error("ERR REPLICAOF not allowed while failing over.");
  }
  if (protocol::equals_ignore_case(ctx.args[1], "NO") &&
      protocol::equals_ignore_case(ctx.args[2], "ONE")) {
    replica_controller.promote(ctx.locking());
    return ctx.reply.ok();
  }
  if (ctx.client.peer == Peer::kReplica) {
    return ctx.reply.error("ERR Command is not valid when client is a replica.");
  }
  if (!is_host(ctx.args[1])) return ctx.reply.error("ERR Invalid master host");
  const auto port = parse_port(ctx.args[2]);
  if (!port) return ctx.reply.error("ERR Invalid master port");
  const ReplicaController::Target target{std::string(ctx.args[1]), *port, false};
  if (!replica_controller.follow(target, ctx.locking())) {
    return ctx.reply.simple("OK Already connected to specified master");
  }
  ctx.reply.ok();
}

// Parses the arguments of FAILOVER other than ABORT. Errors: the error reply.
core::Result<Failover::Request> read_failover(std::span<const std::string_view> words) {
  using protocol::equals_ignore_case;
  Failover::Request request;
  while (!words.empty()) {
    if (equals_ignore_case(words[0], "TIMEOUT") && words.size() > 1 && request.timeout_ms == 0) {
      const auto timeout_ms = core::parse_int64(words[1]);
      if (!timeout_ms) return core::Error{std::string(kNotAnInteger)};
      if (*timeout_ms <= 0) return core::Error{"ERR FAILOVER timeout must be greater than 0"};
      request.timeout_ms = *timeout_ms;
      words = words.subspan(2);
    } else if (equals_ignore_case(words[0], "TO") && words.size() > 2 && !request.target) {
      if (!core::parse_int64(words[2])) return core::Error{std::string(kNotAnInteger)};
      // An invalid port becomes port 0, which no replica has.
      request.target = {std::string(words[1]), parse_port(words[2]).value_or(0)};
      words = words.subspan(3);
    } else if (equals_ignore_case(words[0], "FORCE") && !request.is_forced) {
      request.is_forced = true;
      words = words.subspan(1);
    } else {
      return core::Error{std::string(kSyntaxError)};
    }
  }
  return request;
}

/* FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds] */
void failover(Context& ctx) {
  if (ctx.environment.state.is_in_cluster()) {
    return ctx.reply.error(
        "ERR FAILOVER not allowed in cluster mode. Use CLUSTER FAILOVER command instead.");
  }
  ReplicaController& replica_controller = ctx.services.replica_controller;
  const auto answer = [&ctx](const core::Result<>& done) {
    if (!done) return ctx.reply.error(done.error().message);
    ctx.reply.ok();
  };
  if (ctx.args.size() == 2 && protocol::equals_ignore_case(ctx.args[1], "ABORT")) {
    return answer(replica_controller.abort_failover(ctx.locking()));
  }
  const auto request = read_failover(std::span(ctx.args).subspan(1));
  if (!request) return ctx.reply.error(request.error().message);
  answer(replica_controller.begin_failover(*request, ctx.locking()));
}

constexpr uint32_t kReplicaFlags = kAdmin | kNoScript | kStale | kNoAsyncLoading | kWholeKeyspace;

const Command kReplicaRows[] = {
    {.name = "failover",
     .arity = -1,
     .flags = kAdmin | kNoScript | kStale | kWholeKeyspace,
     .since = "6.2.0",
     .summary = "Hands the role of the leader over to a replica",
     .syntax = "[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]",
     .handler = failover},
    {.name = "replicaof",
     .arity = 3,
     .since = "5.0.0",
     .summary = "Makes this server the replica of another one, or a leader",
     .syntax = "host port | NO ONE",
     .handler = replicaof},
    {.name = "slaveof",
     .arity = 3,
     .since = "1.0.0",
     .summary = "Makes this server the replica of another one, or a leader",
     .syntax = "host port | NO ONE",
     .handler = replicaof},
};

}  // namespace

void answer_role_of_replica(Context& ctx) {
  const ReplicaController& replica_controller = ctx.services.replica_controller;
  const auto target = replica_controller.target().value_or(ReplicaController::Target{});
  ReplicaLinkState state = replica_controller.figures().state;
  if (state == ReplicaLinkState::kConnected && !ctx.services.replication.link_is_up()) {
    // The replica is connected, but waits until its own append log can be written. Until then ROLE
    // reports the state "connect".
    state = ReplicaLinkState::kConnect;
  }
  ctx.reply.array(5);
  ctx.reply.bulk("slave");
  ctx.reply.bulk(target.host);
  ctx.reply.integer(target.port);
  ctx.reply.bulk(kStateNames[static_cast<size_t>(state)]);
  // The replication offset is meaningless while the link to the leader is down, so ROLE replies -1.
  const bool follows = state == ReplicaLinkState::kConnected;
  ctx.reply.integer(follows ? static_cast<int64_t>(ctx.services.replication.offset()) : -1);
}

int64_t replication_offset(const Context& ctx) {
  return static_cast<int64_t>(ctx.services.replication.offset());
}

void forget_replication_history(Context& ctx) {
  ctx.services.replication.forget_history();
}

const CommandFamily kReplicaCommands{
    {.flags = kReplicaFlags, .group = "server", .complexity = "O(1)"}, kReplicaRows};

}  // namespace server
