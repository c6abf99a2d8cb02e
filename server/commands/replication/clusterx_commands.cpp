// SPDX-License-Identifier: MIT
//
// CLUSTERX: the commands that cluster nodes send to each other. Replies are one line.
#include "server/commands/replication/clusterx_commands.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "server/cluster/election/node_file.h"
#include "server/cluster/election/peer_questions.h"
#include "server/commands/families.h"
#include "server/commands/replication/cluster_commands.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/session/deferred_reply.h"

namespace server {
namespace {

using cluster::MemberQueue;
using cluster::PeerAnswered;

// Defers the reply, which the Member's thread will send. Calls `ask` with the queue that passes the
// request to the Member's thread, and with the callback that completes the reply.
template <class Ask>
void answer_later(Context& ctx, Ask ask) {
  MemberQueue* const queue = ctx.services.member;
  if (queue == nullptr) {
    return ctx.reply.error(kClusterDisabled);
  }
  DeferredReply reply = defer_reply(ctx.services.clients, ctx.client.id);
  ask(*queue, reply.end_with);
  ctx.await(std::move(reply.awaited));
}

std::optional<uint64_t> epoch_of(Context& ctx, std::string_view text) {
  const auto epoch = core::parse_int64(text);
  if (epoch && *epoch >= 0) return static_cast<uint64_t>(*epoch);
  ctx.reply.error(kNotAnInteger);
  return std::nullopt;
}

/* CLUSTERX PROMISE shard epoch */
void clusterx_promise(Context& ctx) {
  const auto epoch = epoch_of(ctx, ctx.args[3]);
  if (!epoch) return;
  answer_later(ctx, [&](MemberQueue& queue, PeerAnswered done) {
    cluster::ask_for_promise(queue, std::string(ctx.args[2]), *epoch, std::move(done));
  });
}

/* CLUSTERX OFFSET shard */
void clusterx_offset(Context& ctx) {
  answer_later(ctx, [&](MemberQueue& queue, PeerAnswered done) {
    cluster::ask_for_offset(queue, std::string(ctx.args[2]), std::move(done));
  });
}

/* CLUSTERX RESIGNED shard epoch */
void clusterx_resigned(Context& ctx) {
  const auto epoch = epoch_of(ctx, ctx.args[3]);
  if (!epoch) return;
  answer_later(ctx, [&](MemberQueue& queue, PeerAnswered done) {
    cluster::report_resigned(queue, std::string(ctx.args[2]), *epoch, std::move(done));
  });
}

/* CLUSTERX HANDOVER shard node-id */
void clusterx_handover(Context& ctx) {
  answer_later(ctx, [&](MemberQueue& queue, PeerAnswered done) {
    cluster::ask_for_handover(queue, std::string(ctx.args[2]), std::string(ctx.args[3]),
                              std::move(done));
  });
}

/* CLUSTERX TOPOLOGY */
void clusterx_topology(Context& ctx) {
  answer_later(ctx, [](MemberQueue& queue, PeerAnswered done) {
    cluster::ask_for_node_file(queue, std::move(done));
  });
}

template <void (*handler)(Context&)>
consteval Command peer_question(std::string_view name, int arity, std::string_view summary,
                                std::string_view syntax) {
  return {.name = name,
          .arity = arity,
          .flags = kAdmin | kNoScript | kLoading | kStale | kNoMulti | kNotPaused,
          .summary = summary,
          .syntax = syntax,
          .handler = handler};
}

const Command kQuestions[] = {
    peer_question<clusterx_handover>("handover", 4, "Asks the leader to hand over to a replica",
                                     "shard node-id"),
    peer_question<clusterx_offset>("offset", 3, "Returns a member's offset in its history",
                                   "shard"),
    peer_question<clusterx_promise>("promise", 4, "Asks a member not to take over for a while",
                                    "shard epoch"),
    peer_question<clusterx_resigned>(
        "resigned", 4, "Reports that a leader has stopped acknowledging writes", "shard epoch"),
    peer_question<clusterx_topology>("topology", 2, "Returns the stored topology of the cluster",
                                     ""),
};

const Command kClusterxRows[] = {
    {.name = "clusterx",
     .arity = -2,
     .summary = "Groups what the nodes of a cluster ask each other",
     .subcommands = kQuestions},
};

}  // namespace

void fail_over(Context& ctx, bool is_forced) {
  answer_later(ctx, [&](MemberQueue& queue, PeerAnswered done) {
    cluster::ask_for_failover(queue, is_forced, std::move(done));
  });
}

const CommandFamily kClusterxCommands{{.group = "cluster", .since = "1.0.0", .complexity = "O(1)"},
                                      kClusterxRows};

}  // namespace server
