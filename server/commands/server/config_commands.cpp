// SPDX-License-Identifier: MIT
//
// CONFIG: reads and changes the options of the running server.
#include <algorithm>
#include <string>
#include <vector>

#include "core/keyspace/expiry_index.h"
#include "server/base/config/option_table.h"
#include "server/base/log/log.h"
#include "server/base/metrics/gauges.h"
#include "server/commands/families.h"
#include "server/commands/server/debug_commands.h"
#include "server/commands/server/rewrite_command.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/durability/durability.h"
#include "server/durability/loading/log_switch.h"
#include "server/replication/leader/leader.h"
#include "server/session/clients.h"

namespace server {
namespace {

// Returns whether enable-protected-configs treats the client as local: it is connected through the
// loopback interface or a unix socket.
Origin origin_of(const Session& session) {
  const std::string_view address = session.client->address;
  const bool local = session.client->socket.is_unix || address.starts_with("127.") ||
                     address.starts_with("[::1]:") || address.starts_with("::1:");
  return local ? Origin::kLocal : Origin::kRemote;
}

/* CONFIG GET parameter [parameter ...] */
void config_get(Context& ctx) {
  const auto found = ctx.services.config.get(ctx.args.subspan(2));
  ctx.reply.map(found.size());
  for (const auto& [name, value] : found) {
    ctx.reply.bulk(name);
    ctx.reply.bulk(value);
  }
}

// Switches the append log, and waits for at most a second until INFO shows the new state. Inside
// EXEC, which holds locks that the switch needs, the next tick switches the log instead. Errors:
// the log could not be switched on; all options keep their old values.
core::Result<> follow_append_only(Context& ctx, std::span<const NamedValue> old) {
  const bool was_on = std::ranges::any_of(old, [](const NamedValue& pair) {
    return protocol::equals_ignore_case(pair.first, "appendonly") && pair.second == "yes";
  });
  const bool is_on = ctx.services.config.flag(OptionId::kAppendOnly);
  if (was_on == is_on || ctx.in_exec) return {};
  auto followed = ctx.services.durability.log_switch.await();
  if (followed) return {};
  if (const auto restored = ctx.services.config.set(old, Origin::kLocal); !restored) {
    log_warning("CONFIG SET: cannot restore the old values: {}", restored.error().message);
  }
  return followed;
}

// Returns whether the option must not change while the server loads data. The append log may be
// switched on meanwhile. It then begins when the load has ended.
bool is_denied_while_loading(std::string_view name) {
  return find_option(name) == static_cast<size_t>(OptionId::kDir);
}

/* CONFIG SET parameter value [parameter value ...] */
void config_set(Context& ctx) {
  if (ctx.args.size() % 2 != 0) return ctx.reply.error(kSyntaxError);
  std::vector<NamedValue> pairs;
  std::vector<std::string_view> names;
  for (size_t i = 2; i < ctx.args.size(); i += 2) {
    pairs.emplace_back(ctx.args[i], ctx.args[i + 1]);
    names.push_back(ctx.args[i]);
  }
  const bool is_for_tests = std::ranges::any_of(names, [](std::string_view name) {
    const auto index = find_option(name);
    return index && option_table()[*index].hidden;
  });
  if (is_for_tests && !is_debug_allowed(ctx)) return;
  if (ctx.services.durability.availability.has(Availability::kLoading) &&
      std::ranges::any_of(names, is_denied_while_loading)) {
    return ctx.reply.error(kServerIsLoading);
  }
  const auto old = ctx.services.config.get(names);
  const auto set = ctx.services.config.set(pairs, origin_of(ctx.session));
  if (!set) return ctx.reply.error(set.error().message);
  for (const std::string& warning : ctx.services.config.take_warnings()) {
    log_notice("{}", warning);
  }
  if (auto followed = follow_append_only(ctx, old); !followed) {
    return ctx.reply.error(
        config_set_error("appendonly", "Unable to turn on AOF. Check server logs."));
  }
  ctx.reply.ok();
}

bool config_set_hides(Arguments args, size_t index) {
  return index >= 3 && index % 2 == 1 && Config::is_sensitive(args[index - 1]);
}

/* CONFIG RESETSTAT */
void config_resetstat(Context& ctx) {
  ctx.services.statistics.reset();
  ctx.services.leader.reset_counters();
  ctx.services.gauges.reset();
  ctx.services.clients.reset_evicted_count();
  ctx.keyspace().expiry_statistics().reset();
  ctx.reply.ok();
}

constexpr uint32_t kAdministration = kAdmin | kNoScript | kLoading | kStale;

constexpr Command kConfigSubcommands[] = {
    {.name = "get",
     .arity = -3,
     .summary = "Returns the options that match the patterns",
     .complexity = "O(N) when N is the number of configuration parameters provided",
     .syntax = "parameter ...",
     .handler = config_get},
    {.name = "resetstat",
     .arity = 2,
     .summary = "Puts the counters of INFO back to zero",
     .handler = config_resetstat},
    {.name = "rewrite",
     .arity = 2,
     .since = "2.8.0",
     .summary = "Writes the options in use into the configuration file",
     .handler = calls<rewrite_config, Config::Extent::kChanged>},
    {.name = "set",
     .arity = -4,
     .summary = "Changes options, all of them or none",
     .complexity = "O(N) when N is the number of configuration parameters provided",
     .syntax = "(parameter value) ...",
     .tips = "request_policy:all_nodes response_policy:all_succeeded",
     .handler = config_set,
     .hides = config_set_hides},
};

const Command kConfigRows[] = {
    {.name = "config",
     .summary = "Groups the commands about the configuration",
     .subcommands = kConfigSubcommands},
};

}  // namespace

const CommandFamily kConfigCommands{
    {.flags = kAdministration, .group = "server", .since = "2.0.0", .complexity = "O(1)"},
    kConfigRows};

}  // namespace server
