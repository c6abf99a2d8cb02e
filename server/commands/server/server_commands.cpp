// SPDX-License-Identifier: MIT
//
// INFO, LOLWUT, MODULE and TIME return information about the server.
#include <fmt/format.h>

#include <string>

#include "core/clock.h"
#include "server/commands/families.h"
#include "server/commands/info/info.h"
#include "server/commands/server/module_list.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

/* INFO [section ...] */
void info_command(Context& ctx) {
  const info::Source source{ctx.services, ctx.now_ms, ctx.locking()};
  ctx.reply.verbatim(info::text_of(source, ctx.args.subspan(1)), "txt");
}

/* LOLWUT [VERSION version] */
void lolwut(Context& ctx) {
  if (ctx.args.size() > 2 && protocol::equals_ignore_case(ctx.args[1], "version") &&
      !core::parse_int64(ctx.args[2])) {
    return ctx.reply.error(kNotAnInteger);
  }
  // The picture of LOLWUT is a blossom: each petal is a bit that a hash has set.
  constexpr std::string_view kBloom =
      "      .-.\n"
      "   .-(1 0)-.\n"
      "  (0 1)@(1 1)\n"
      "   '-(0 1)-'\n"
      "      '|'\n"
      "     ~\\|/~\n";
  ctx.reply.verbatim(fmt::format("{}\nMaybe a flower, certainly no rose. Bloomery ver. {}\n",
                                 kBloom, BLOOMERY_VERSION),
                     "txt");
}

/* MODULE LIST */
void module_list(Context& ctx) {
  write_module_list(ctx.reply);
}

/* MODULE LOAD path [arg ...] */
void module_refusal(Context& ctx) {
  ctx.reply.error("ERR Modules cannot be loaded or unloaded: the bf commands are built in");
}

/* TIME */
void time_command(Context& ctx) {
  constexpr int64_t kMicrosecondsPerSecond = 1'000'000;
  const int64_t now_us = ctx.services.clock.wall_us();
  ctx.reply.array(2);
  ctx.reply.bulk(std::to_string(now_us / kMicrosecondsPerSecond));
  ctx.reply.bulk(std::to_string(now_us % kMicrosecondsPerSecond));
}

constexpr uint32_t kModuleFlags = kAdmin | kNoScript;
constexpr uint32_t kModuleChangeFlags = kModuleFlags | kNoAsyncLoading;

constexpr Command kModuleSubcommands[] = {
    {.name = "list",
     .arity = 2,
     .flags = kModuleFlags,
     .summary = "Returns the modules whose commands are served",
     .complexity = "O(N) where N is the number of loaded modules",
     .tips = "nondeterministic_output_order",
     .handler = module_list},
    {.name = "load",
     .arity = -3,
     .summary = "Always fails: nothing can be loaded",
     .syntax = "path [arg ...]",
     .handler = module_refusal},
    {.name = "loadex",
     .arity = -3,
     .since = "7.0.0",
     .summary = "Always fails: nothing can be loaded",
     .syntax = "path [(CONFIG name value) ...] [ARGS arg ...]",
     .handler = module_refusal},
    {.name = "unload",
     .arity = 3,
     .summary = "Always fails: nothing can be unloaded",
     .syntax = "name",
     .handler = module_refusal},
};

const Command kServerRows[] = {
    {.name = "info",
     .arity = -1,
     .flags = kLoading | kStale | kWholeKeyspace,
     .categories = kDangerous,
     .since = "1.0.0",
     .summary = "Returns figures about the server",
     .syntax = "[section ...]",
     .tips = "nondeterministic_output request_policy:all_shards response_policy:special",
     .handler = info_command},
    {.name = "lolwut",
     .arity = -1,
     .flags = kReadOnly | kFast,
     .since = "5.0.0",
     .summary = "Draws something and prints the version",
     .syntax = "[VERSION version]",
     .handler = lolwut},
    {.name = "module",
     .summary = "Groups the commands about modules",
     .subcommands = kModuleSubcommands},
    {.name = "time",
     .arity = 1,
     .flags = kLoading | kStale | kFast,
     .since = "2.6.0",
     .summary = "Returns the time in seconds and microseconds",
     .tips = kVaryingOutput,
     .handler = time_command},
};

}  // namespace

const CommandFamily kServerCommands{
    {.flags = kModuleChangeFlags, .group = "server", .since = "4.0.0", .complexity = "O(1)"},
    kServerRows};

}  // namespace server
