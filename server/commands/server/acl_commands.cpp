// SPDX-License-Identifier: MIT
//
// ACL shows and changes users and their permissions.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/commands/families.h"
#include "server/commands/pair_writer.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/dispatch/permissions.h"
#include "server/session/acl/access_log.h"
#include "server/session/acl/acl_file.h"
#include "server/session/acl/command_table.h"
#include "server/session/acl/password.h"
#include "server/session/acl/user.h"
#include "server/session/acl/users.h"
#include "server/session/clients.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/session_user.h"

namespace server {
namespace {

void wrong_subcommand(Context& ctx) {
  ctx.reply.error(protocol::wrong_subcommand(ctx.args[1], "ACL"));
}

// Closes the sessions in `session_ids` that are subscribed to a channel without permission.
// `session_ids` is sorted. When this function returns, CLIENT LIST no longer shows the closed
// sessions.
void end_forbidden_listeners(const Context& ctx, const std::vector<uint64_t>& session_ids) {
  if (session_ids.empty()) return;
  for (const auto& [id, kind, name] : ctx.services.pubsub.subscriptions_of(session_ids)) {
    const auto client = ctx.services.clients.find(id);
    if (client == nullptr) continue;
    const acl::UserPtr user = ctx.services.users.find(client->names.get().user);
    const bool may_listen =
        user != nullptr && user->allows_channel(name, kind == SubscriptionKind::kPattern);
    if (!may_listen) client->request_kill();
  }
}

// Must be called after permissions have changed. `names` lists the affected users; nullopt means
// all users. Closes sessions of deleted users, and sessions with subscriptions that are no longer
// permitted. Other sessions refresh their permissions. The calling client always gets its reply,
// even if its session is closed afterwards.
void notify_sessions(Context& ctx, std::optional<Arguments> names) {
  std::vector<uint64_t> listeners;
  for (const auto& client : ctx.services.clients.list()) {
    const std::string user = client->names.get().user;
    if (names && std::ranges::find(*names, user) == names->end()) continue;
    if (client->id == ctx.client.id) {
      if (!refresh_user(ctx.session, ctx.environment.users)) ctx.close_after_reply();
      continue;
    }
    if (ctx.services.users.find(user) == nullptr) {
      client->request_kill();
      continue;
    }
    if (client->subscriptions.any()) listeners.push_back(client->id);
    if (client->wake) client->wake();
  }
  end_forbidden_listeners(ctx, listeners);
}

/* ACL CAT [categoryname] */
void acl_cat(Context& ctx) {
  const acl::CommandTable& table = ctx.services.users.table();
  if (ctx.args.size() > 3) return wrong_subcommand(ctx);
  if (ctx.args.size() == 2) {
    ctx.reply.array(table.category_names().size());
    for (const std::string_view name : table.category_names()) ctx.reply.bulk(name);
    return;
  }
  const auto bit = table.category_bit(ctx.args[2]);
  if (!bit) return ctx.reply.error(fmt::format("ERR Unknown category '{}'", ctx.args[2]));
  std::vector<std::string_view> names;
  for (size_t i = 0; i < table.size(); ++i) {
    if ((table.at(i).categories & *bit) != 0) names.push_back(table.at(i).name);
  }
  ctx.reply.array(names.size());
  for (const std::string_view name : names) ctx.reply.bulk(name);
}

/* ACL DELUSER username [username ...] */
void acl_deluser(Context& ctx) {
  const Arguments names = ctx.args.subspan(2);
  if (std::ranges::find(names, acl::kDefaultUser) != names.end()) {
    return ctx.reply.error("ERR The 'default' user cannot be removed");
  }
  int64_t removed = 0;
  for (const std::string_view name : names) removed += ctx.services.users.remove(name) ? 1 : 0;
  notify_sessions(ctx, names);
  ctx.reply.integer(removed);
}

/* ACL DRYRUN username command [arg ...] */
void acl_dryrun(Context& ctx) {
  const acl::UserPtr user = ctx.services.users.find(ctx.args[2]);
  if (user == nullptr) {
    return ctx.reply.error(fmt::format("ERR User '{}' not found", ctx.args[2]));
  }
  const Arguments args = ctx.args.subspan(3);
  const auto result = dry_run(ctx.services.registry, *user, args);
  if (!result) return ctx.reply.error(result.error().message);
  result->is_allowed ? ctx.reply.ok() : ctx.reply.bulk(result->lack);
}

/* ACL GENPASS [bits] */
void acl_genpass(Context& ctx) {
  constexpr int64_t kDefaultBits = 256;
  if (ctx.args.size() > 3) return wrong_subcommand(ctx);
  int64_t bits = kDefaultBits;
  if (ctx.args.size() == 3) {
    const auto wanted = core::parse_int64(ctx.args[2]);
    if (!wanted) return ctx.reply.error(kNotAnInteger);
    bits = *wanted;
  }
  if (bits < 1 || bits > static_cast<int64_t>(acl::kPasswordBitsMax)) {
    return ctx.reply.error(
        fmt::format("ERR ACL GENPASS argument must be the number of bits for the output password, "
                    "a positive number up to {}",
                    acl::kPasswordBitsMax));
  }
  const auto password = acl::random_password(static_cast<size_t>(bits));
  if (!password) return ctx.reply.error("ERR The system has no random numbers");
  ctx.reply.bulk(*password);
}

void write_selector(const acl::Selector& selector, protocol::ReplyWriter& reply) {
  PairWriter pairs(reply);
  pairs.text("commands", selector.commands().text());
  pairs.text("keys", selector.key_text());
  pairs.text("channels", selector.channel_text());
}

/* ACL GETUSER username */
void acl_getuser(Context& ctx) {
  const acl::UserPtr user = ctx.services.users.find(ctx.args[2]);
  if (user == nullptr) return ctx.reply.null();
  ctx.reply.map(6);
  ctx.reply.bulk("flags");
  const auto flags = user->flag_names();
  ctx.reply.set(flags.size());
  for (const std::string_view flag : flags) ctx.reply.bulk(flag);
  ctx.reply.bulk("passwords");
  ctx.reply.array(user->passwords().size());
  for (const auto& password : user->passwords()) ctx.reply.bulk(acl::hash_text(password));
  write_selector(user->selectors().front(), ctx.reply);
  ctx.reply.bulk("selectors");
  const auto selectors = user->selectors().subspan(1);
  ctx.reply.array(selectors.size());
  for (const acl::Selector& selector : selectors) {
    ctx.reply.map(3);
    write_selector(selector, ctx.reply);
  }
}

/* ACL LIST */
void acl_list(Context& ctx) {
  const auto lines = acl::user_lines(ctx.services.users);
  ctx.reply.array(lines.size());
  for (const std::string& line : lines) ctx.reply.bulk(line);
}

// Returns the path of the ACL file. If none is configured, replies with an error and returns
// nullopt.
std::optional<std::string> acl_file(Context& ctx) {
  std::string path = ctx.services.config.text(OptionId::kAclFile);
  if (!path.empty()) return path;
  ctx.reply.error(
      "ERR This Redis instance is not configured to use an ACL file. You may want to specify users "
      "via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis "
      "configuration file set) in order to store users in the Redis configuration.");
  return std::nullopt;
}

// The mutex prevents one thread from loading the file while another overwrites it.
std::mutex& file_mutex() {
  static std::mutex mutex;
  return mutex;
}

/* ACL LOAD */
void acl_load(Context& ctx) {
  const auto path = acl_file(ctx);
  if (!path) return;
  const std::scoped_lock lock(file_mutex());
  if (auto loaded = acl::load_acl_file(ctx.services.users, *path); !loaded) {
    return ctx.reply.error("ERR " + loaded.error().message);
  }
  notify_sessions(ctx, std::nullopt);
  ctx.reply.ok();
}

/* ACL SAVE */
void acl_save(Context& ctx) {
  const auto path = acl_file(ctx);
  if (!path) return;
  const std::scoped_lock lock(file_mutex());
  if (auto saved = acl::save_acl_file(ctx.services.users, *path); !saved) {
    return ctx.reply.error(
        "ERR There was an error trying to save the ACLs. Please check the server logs for more "
        "information");
  }
  ctx.reply.ok();
}

/* ACL LOG [count | RESET] */
void acl_log(Context& ctx) {
  constexpr int64_t kDefaultCount = 10;
  acl::AccessLog& log = ctx.services.users.log();
  if (ctx.args.size() > 3) return wrong_subcommand(ctx);
  int64_t count = kDefaultCount;
  if (ctx.args.size() == 3) {
    if (protocol::equals_ignore_case(ctx.args[2], "reset")) {
      log.clear();
      return ctx.reply.ok();
    }
    const auto wanted = core::parse_int64(ctx.args[2]);
    if (!wanted) return ctx.reply.error(kNotAnInteger);
    count = std::max<int64_t>(*wanted, 0);
  }
  const auto entries = log.newest(static_cast<size_t>(count));
  ctx.reply.array(entries.size());
  for (const acl::AccessLog::Entry& entry : entries) {
    const int64_t age_ms = std::max<int64_t>(ctx.now_ms - entry.last_ms, 0);
    const std::string_view client = entry.denied.client;
    ctx.reply.map(10);
    PairWriter pairs(ctx.reply);
    pairs.integer("count", entry.count);
    pairs.text("reason", acl::reason_name(entry.denied.reason));
    pairs.text("context", entry.denied.in_transaction ? "multi" : "toplevel");
    pairs.text("object", entry.denied.object);
    pairs.text("username", entry.denied.user);
    pairs.redis_number("age-seconds", static_cast<double>(age_ms) / 1000);
    pairs.text("client-info", client.substr(0, client.find('\n')));
    // Redis' ACL LOG has the following three fields since version 7.2.
    pairs.integer("entry-id", entry.id);
    pairs.integer("timestamp-created", entry.first_ms);
    pairs.integer("timestamp-last-updated", entry.last_ms);
  }
}

/* ACL SETUSER username [rule ...] */
void acl_setuser(Context& ctx) {
  const std::string_view name = ctx.args[2];
  if (auto set = ctx.services.users.set(name, ctx.args.subspan(3)); !set) {
    return ctx.reply.error(set.error().message);
  }
  notify_sessions(ctx, ctx.args.subspan(2, 1));
  ctx.reply.ok();
}

bool acl_setuser_hides(Arguments, size_t index) {
  return index > 1;
}

/* ACL USERS */
void acl_users(Context& ctx) {
  const auto users = ctx.services.users.list();
  ctx.reply.array(users.size());
  for (const acl::UserPtr& user : users) ctx.reply.bulk(user->name());
}

/* ACL WHOAMI */
void acl_whoami(Context& ctx) {
  if (ctx.session.identity.user == nullptr) return ctx.reply.null();
  ctx.reply.bulk(ctx.session.identity.user->name());
}

constexpr uint32_t kAnybodys = kNoScript | kLoading | kStale;

constexpr Command kAclSubcommands[] = {
    {.name = "cat",
     .arity = -2,
     .flags = kAnybodys,
     .summary = "Returns the categories, or the commands of one",
     .complexity = "O(1) since the categories and commands are a fixed set.",
     .syntax = "[categoryname]",
     .handler = acl_cat},
    {.name = "deluser",
     .arity = -3,
     .summary = "Deletes users and closes their connections",
     .complexity = "O(1) amortized time considering the typical user.",
     .syntax = "username ...",
     .handler = acl_deluser},
    {.name = "dryrun",
     .arity = -4,
     .since = "7.0.0",
     .summary = "Returns whether a user may run a command, without running it",
     .complexity = "O(1).",
     .syntax = "username command [arg ...]",
     .handler = acl_dryrun},
    {.name = "genpass",
     .arity = -2,
     .flags = kAnybodys,
     .summary = "Returns a random password",
     .syntax = "[bits:integer]",
     .handler = acl_genpass},
    {.name = "getuser",
     .arity = 3,
     .summary = "Returns the rules of a user",
     .complexity = "O(N). Where N is the number of password, command and pattern rules "
                   "that the user has.",
     .syntax = "username",
     .handler = acl_getuser},
    {.name = "list",
     .arity = 2,
     .summary = "Returns all users as lines of a file",
     .complexity = "O(N). Where N is the number of configured users.",
     .handler = acl_list},
    {.name = "load",
     .arity = 2,
     .summary = "Replaces all users by those of the file",
     .complexity = "O(N). Where N is the number of configured users.",
     .handler = acl_load},
    {.name = "log",
     .arity = -2,
     .summary = "Returns or clears the recently denied commands",
     .complexity = "O(N) with N being the number of entries shown.",
     .syntax = "[count | RESET]",
     .handler = acl_log},
    {.name = "save",
     .arity = 2,
     .summary = "Writes all users into the file",
     .complexity = "O(N). Where N is the number of configured users.",
     .handler = acl_save},
    {.name = "setuser",
     .arity = -3,
     .summary = "Creates or changes a user, by all rules or none",
     .complexity = "O(N). Where N is the number of rules provided.",
     .syntax = "username [rule ...]",
     .handler = acl_setuser,
     .hides = acl_setuser_hides},
    {.name = "users",
     .arity = 2,
     .summary = "Returns the names of all users",
     .complexity = "O(N). Where N is the number of configured users.",
     .handler = acl_users},
    {.name = "whoami",
     .arity = 2,
     .flags = kAnybodys,
     .summary = "Returns the user of the connection",
     .handler = acl_whoami},
};

const Command kAclRows[] = {
    {.name = "acl",
     .summary = "Groups the commands about users",
     .complexity = "Depends on subcommand.",
     .subcommands = kAclSubcommands},
};

}  // namespace

const CommandFamily kAclCommands{
    {.flags = kAnybodys | kAdmin, .group = "server", .since = "6.0.0", .complexity = "O(1)"},
    kAclRows};

}  // namespace server
