// SPDX-License-Identifier: MIT
//
// CLUSTER: refused in Redis' words, by which clients see that this is a single server.
#include "server/dispatch/context.h"
#include "server/dispatch/families.h"

namespace server {
namespace {

/* CLUSTER INFO */
void cluster_refusal(Context& ctx) {
  ctx.reply.error("ERR This instance has cluster support disabled");
}

constexpr Command refused(std::string_view name, std::string_view summary,
                          std::string_view tips = kVaryingOutput) {
  return {.name = name,
          .arity = 2,
          .flags = kStale,
          .group = "cluster",
          .since = "3.0.0",
          .summary = summary,
          .complexity = "O(1)",
          .tips = tips,
          .handler = cluster_refusal};
}

constexpr Command kClusterSubcommands[] = {
    refused("info", "Is refused: would describe the cluster"),
    {.name = "keyslot",
     .arity = 3,
     .flags = kStale,
     .group = "cluster",
     .since = "3.0.0",
     .summary = "Is refused: would return the slot of a key",
     .complexity = "O(1)",
     .syntax = "key:string",
     .handler = cluster_refusal},
    refused("myid", "Is refused: would return the id of the node", ""),
    refused("nodes", "Is refused: would describe the nodes"),
    {.name = "shards",
     .arity = 2,
     .flags = kStale,
     .group = "cluster",
     .since = "7.0.0",
     .summary = "Is refused: would return slots by shard",
     .complexity = "O(1)",
     .tips = kVaryingOutput,
     .handler = cluster_refusal},
    refused("slots", "Is refused: would return slots by node"),
};

const Command kClusterRows[] = {
    {.name = "cluster",
     .arity = -2,
     .group = "cluster",
     .since = "3.0.0",
     .summary = "Groups the commands about clusters, which this server is no part of",
     .complexity = "Depends on subcommand",
     .subcommands = kClusterSubcommands},
};

}  // namespace

std::span<const Command> cluster_commands() {
  return kClusterRows;
}

}  // namespace server
