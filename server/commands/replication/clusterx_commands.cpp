// SPDX-License-Identifier: MIT
//
// CLUSTERX: the commands that cluster nodes send to each other. Replies are one line.
#include "server/commands/replication/clusterx_commands.h"

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

// Defers the reply, which the Member's thread will send. Calls `ask` with the queue that passes the
// request to the Member's thread, the arguments, and the callback that completes the reply.
template <class Ask, class... Arguments>
void answer_later(Context& ctx, Ask ask, Arguments... arguments) {
  MemberQueue* const queue = ctx.services.member;
  if (queue == nullptr) {
    return ctx.reply.error(kClusterDisabled);
  }
  DeferredReply reply = defer_reply(ctx.services.clients, ctx.client.id);
  ask(*queue, std::move(arguments)..., reply.end_with);
  ctx.await(std::move(reply.awaited));
}

/* CLUSTERX PROMISE shard epoch | CLUSTERX RESIGNED shard epoch */
void ask_about_epoch(Context& ctx, decltype(cluster::ask_for_promise)* ask) {
  const auto epoch = core::parse_int64(ctx.args[3]);
  if (!epoch || *epoch < 0) return ctx.reply.error(kNotAnInteger);
  answer_later(ctx, ask, std::string(ctx.args[2]), static_cast<uint64_t>(*epoch));
}

/* CLUSTERX OFFSET shard */
void clusterx_offset(Context& ctx) {
  answer_later(ctx, cluster::ask_for_offset, std::string(ctx.args[2]));
}

/* CLUSTERX HANDOVER shard node-id */
void clusterx_handover(Context& ctx) {
  answer_later(ctx, cluster::ask_for_handover, std::string(ctx.args[2]), std::string(ctx.args[3]));
}

/* CLUSTERX TOPOLOGY */
void clusterx_topology(Context& ctx) {
  answer_later(ctx, cluster::ask_for_node_file,
               std::string(ctx.config().text(OptionId::kClusterName)));
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
    peer_question<calls<ask_about_epoch, cluster::ask_for_promise>>(
        "promise", 4, "Asks a member not to take over for a while", "shard epoch"),
    peer_question<calls<ask_about_epoch, cluster::report_resigned>>(
        "resigned", 4, "Reports that a leader has stopped acknowledging writes", "shard epoch"),
    peer_question<clusterx_topology>("topology", 2, "Returns the stored topology of the cluster",
                                     ""),
};

const Command kClusterxRows[] = {
    {.name = "clusterx",
     .summary = "Groups what the nodes of a cluster ask each other",
     .subcommands = kQuestions},
};

}  // namespace

void fail_over(Context& ctx, bool is_forced) {
  answer_later(ctx, cluster::ask_for_failover, is_forced);
}

const CommandFamily kClusterxCommands{{.group = "cluster", .since = "1.0.0", .complexity = "O(1)"},
                                      kClusterxRows};

}  // namespace server
