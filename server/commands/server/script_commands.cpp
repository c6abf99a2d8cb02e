// SPDX-License-Identifier: MIT
//
// SCRIPT and FUNCTION, with the replies of a server that holds no scripts and no functions.
#include <fmt/format.h>

#include "server/commands/families.h"
#include "server/commands/pair_writer.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

// Returns whether the arguments are valid for SCRIPT FLUSH: none, ASYNC or SYNC.
bool is_flush_mode(Arguments arguments) {
  return arguments.empty() ||
         (arguments.size() == 1 && (protocol::equals_ignore_case(arguments[0], "ASYNC") ||
                                    protocol::equals_ignore_case(arguments[0], "SYNC")));
}

/* SCRIPT EXISTS sha1 [sha1 ...] */
void script_exists(Context& ctx) {
  const size_t count = ctx.args.size() - 2;
  ctx.reply.array(count);
  for (size_t i = 0; i < count; ++i) ctx.reply.integer(0);
}

/* SCRIPT FLUSH [ASYNC | SYNC] */
void script_flush(Context& ctx) {
  if (!is_flush_mode(ctx.args.subspan(2))) {
    return ctx.reply.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  }
  ctx.reply.ok();
}

/* SCRIPT KILL, FUNCTION KILL: Sentinel's rights name the first of them. */
void kill_script(Context& ctx) {
  ctx.reply.error("NOTBUSY No scripts in execution right now.");
}

/* FUNCTION FLUSH [ASYNC | SYNC] */
void function_flush(Context& ctx) {
  if (ctx.args.size() > 3) {
    return ctx.reply.error(protocol::wrong_subcommand(ctx.args[1], "FUNCTION"));
  }
  if (!is_flush_mode(ctx.args.subspan(2))) {
    return ctx.reply.error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  }
  ctx.reply.ok();
}

/* FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE] */
void function_list(Context& ctx) {
  bool has_code = false;
  bool has_pattern = false;
  for (size_t i = 2; i < ctx.args.size(); ++i) {
    if (!has_code && protocol::equals_ignore_case(ctx.args[i], "WITHCODE")) {
      has_code = true;
    } else if (!has_pattern && protocol::equals_ignore_case(ctx.args[i], "LIBRARYNAME")) {
      has_pattern = true;
      if (++i == ctx.args.size()) {
        return ctx.reply.error("ERR library name argument was not given");
      }
    } else {
      return ctx.reply.error(fmt::format("ERR Unknown argument {}", ctx.args[i]));
    }
  }
  ctx.reply.array(0);
}

/* FUNCTION STATS */
void function_stats(Context& ctx) {
  ctx.reply.map(2);
  ctx.reply.bulk("running_script");
  ctx.reply.null();
  ctx.reply.bulk("engines");
  // FUNCTION STATS lists the engine LUA although the server holds no functions, because clients
  // look the engine up by its name.
  ctx.reply.map(1);
  ctx.reply.bulk("LUA");
  ctx.reply.map(2);
  PairWriter pairs(ctx.reply);
  pairs.integer("libraries_count", 0);
  pairs.integer("functions_count", 0);
}

constexpr Command kFunctionSubcommands[] = {
    {.name = "flush",
     .arity = -2,
     .flags = kNoScript | kWrite | kWholeKeyspace,
     .since = "7.0.0",
     .summary = "Has nothing to delete: there are no functions",
     .syntax = "[ASYNC | SYNC]",
     .tips = "request_policy:all_shards response_policy:all_succeeded",
     .handler = function_flush},
    {.name = "kill",
     .arity = 2,
     .flags = kNoScript | kAllowBusy,
     .since = "7.0.0",
     .summary = "Reports that no function runs",
     .tips = "request_policy:all_shards response_policy:one_succeeded",
     .handler = kill_script},
    {.name = "list",
     .arity = -2,
     .flags = kNoScript,
     .since = "7.0.0",
     .summary = "Returns an empty list: there are no functions",
     .syntax = "[LIBRARYNAME library-name-pattern] [WITHCODE]",
     .tips = "nondeterministic_output_order",
     .handler = function_list},
    {.name = "stats",
     .arity = 2,
     .flags = kNoScript | kAllowBusy,
     .since = "7.0.0",
     .summary = "Reports that no function runs",
     .tips = "nondeterministic_output request_policy:all_shards response_policy:special",
     .handler = function_stats},
};

constexpr Command kScriptSubcommands[] = {
    {.name = "exists",
     .arity = -3,
     .flags = kNoScript,
     .since = "2.6.0",
     .summary = "Reports that no such script exists",
     .complexity = "O(N) where N is the number of scripts asked for",
     .syntax = "sha1 ...",
     .tips = "request_policy:all_shards response_policy:agg_logical_and",
     .handler = script_exists},
    {.name = "flush",
     .arity = -2,
     .flags = kNoScript,
     .since = "2.6.0",
     .summary = "Has nothing to delete: there are no scripts",
     .syntax = "[ASYNC | SYNC]",
     .tips = "request_policy:all_nodes response_policy:all_succeeded",
     .handler = script_flush},
    {.name = "kill",
     .arity = 2,
     .flags = kNoScript | kAllowBusy,
     .since = "2.6.0",
     .summary = "Reports that no script runs",
     .tips = "request_policy:all_shards response_policy:one_succeeded",
     .handler = kill_script},
};

const Command kScriptRows[] = {
    {.name = "function",
     .since = "7.0.0",
     .summary = "Reports that there are no functions",
     .subcommands = kFunctionSubcommands},
    {.name = "script",
     .since = "2.6.0",
     .summary = "Reports that there are no scripts",
     .subcommands = kScriptSubcommands},
};

}  // namespace

const CommandFamily kScriptCommands{
    {.categories = kScripting, .group = "scripting", .complexity = "O(1)"}, kScriptRows};

}  // namespace server
