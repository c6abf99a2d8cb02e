// SPDX-License-Identifier: MIT
//
// CLIENT: shows and changes the state of the client's own connection and of other clients.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "server/commands/connection/client_filter.h"
#include "server/commands/connection/client_name.h"
#include "server/commands/connection/client_tracking_commands.h"
#include "server/commands/families.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/dispatch/pause_gate.h"
#include "server/replication/leader/leader.h"
#include "server/session/client_line.h"
#include "server/session/clients.h"
#include "server/session/deferred_reply.h"

namespace server {
namespace {

using protocol::equals_ignore_case;

/* CLIENT ID */
void client_id(Context& ctx) {
  ctx.reply.integer(static_cast<int64_t>(ctx.client.id));
}

std::string line_of(const Context& ctx, const Client& client) {
  size_t argument_bytes = 0;
  if (client.id == ctx.client.id) {
    for (const std::string_view argument : ctx.args) argument_bytes += argument.size();
  }
  return client_line(client, ctx.environment.clock.monotonic_us(), argument_bytes);
}

/* CLIENT INFO */
void client_info(Context& ctx) {
  ctx.reply.verbatim(line_of(ctx, ctx.client), "txt");
}

/* CLIENT LIST [ID client-id …] [TYPE type] [USER name] [ADDR a] [LADDR a] [SKIPME yes|no]
 * [MAXAGE seconds] */
void client_list(Context& ctx) {
  const Arguments options = ctx.args.subspan(2);
  if (!is_client_filter(options)) return ctx.reply.error(kSyntaxError);
  ClientFilter filter;
  const auto read = read_client_filter(options, ctx.services.users, kListedIds, filter);
  if (!read) return ctx.reply.error(read.error().message);
  std::vector<std::shared_ptr<Client>> clients;
  for (const uint64_t id : filter.ids) {
    if (auto client = ctx.services.clients.find(id)) clients.push_back(std::move(client));
  }
  if (filter.ids.empty()) clients = ctx.services.clients.list();
  const int64_t now_us = ctx.environment.clock.monotonic_us();
  std::string lines;
  for (const auto& client : clients) {
    if (filter.accepts(*client, ctx.client, now_us)) lines += line_of(ctx, *client);
  }
  ctx.reply.verbatim(lines, "txt");
}

struct Killed {
  int64_t count = 0;
  bool is_caller = false;  // whether the calling client is one of them
};

// Closes the selected clients. The calling client still gets its reply.
Killed kill_clients(Context& ctx, const ClientFilter& filter) {
  const int64_t now_us = ctx.environment.clock.monotonic_us();
  Killed killed;
  for (const auto& client : ctx.services.clients.list()) {
    if (!filter.accepts(*client, ctx.client, now_us)) continue;
    ++killed.count;
    if (client->id == ctx.client.id) {
      killed.is_caller = true;
      ctx.close_after_reply();
    } else {
      // As in Redis, stream buffers that only the killed replica uses are freed before the reply.
      // The killed replica's connection ends later, on another thread.
      if (client->peer == Peer::kReplica) ctx.services.leader.detach(client->id);
      client->request_kill();
    }
  }
  return killed;
}

// Replies when the killed clients run no command any more and get no message. Inside EXEC the reply
// cannot wait for that, and a caller that kills itself gets it at once.
void reply_when_closed(Context& ctx, const Killed& killed, std::string line) {
  if (killed.count == 0 || killed.is_caller || ctx.in_exec) {
    return line == "+OK" ? ctx.reply.ok() : ctx.reply.integer(killed.count);
  }
  DeferredReply reply = defer_reply(ctx.services.clients, ctx.client.id);
  ctx.services.pause.drain([end_with = reply.end_with, line = std::move(line)] { end_with(line); });
  ctx.await(std::move(reply.awaited));
}

/* CLIENT KILL address | [ID client-id …] [TYPE type] [USER name] [ADDR a] [LADDR a]
 * [SKIPME yes|no] [MAXAGE seconds] */
void client_kill(Context& ctx) {
  ClientFilter filter;
  if (ctx.args.size() == 3) {
    filter.address = ctx.args[2];
    const Killed killed = kill_clients(ctx, filter);
    if (killed.count == 0) return ctx.reply.error("ERR No such client");
    return reply_when_closed(ctx, killed, "+OK");
  }
  filter.skips_self = true;
  const auto read = read_client_filter(ctx.args.subspan(2), ctx.services.users, kKilledIds, filter);
  if (!read) return ctx.reply.error(read.error().message);
  const Killed killed = kill_clients(ctx, filter);
  reply_when_closed(ctx, killed, fmt::format(":{}", killed.count));
}

/* CLIENT SETNAME connection-name */
void client_setname(Context& ctx) {
  const std::string_view name = ctx.args[2];
  if (const auto fault = client_name_fault(name); !fault.empty()) return ctx.reply.error(fault);
  ctx.client.names.change([&](ClientNames::Values& names) { names.name = name; });
  ctx.reply.ok();
}

/* CLIENT GETNAME */
void client_getname(Context& ctx) {
  const std::string name = ctx.client.names.get().name;
  if (name.empty()) return ctx.reply.null();
  ctx.reply.bulk(name);
}

/* CLIENT SETINFO LIB-NAME name | LIB-VER version */
void client_setinfo(Context& ctx) {
  const std::string_view attribute = ctx.args[2];
  const std::string_view value = ctx.args[3];
  const bool is_name = equals_ignore_case(attribute, "lib-name");
  if (!is_name && !equals_ignore_case(attribute, "lib-ver")) {
    return ctx.reply.error(fmt::format("ERR Unrecognized option '{}'", attribute));
  }
  if (const auto fault = client_name_fault(value); fault == kLongClientName) {
    return ctx.reply.error(fault);
  } else if (!fault.empty()) {
    return ctx.reply.error(
        fmt::format("ERR {} cannot contain spaces, newlines or special characters.", attribute));
  }
  ctx.client.names.change([&](ClientNames::Values& names) {
    (is_name ? names.library : names.library_version) = value;
  });
  ctx.reply.ok();
}

/* CLIENT REPLY ON | OFF | SKIP */
void client_reply(Context& ctx) {
  ReplyMode& mode = ctx.session.reply_mode;
  if (equals_ignore_case(ctx.args[2], "on")) {
    mode = ReplyMode::kOn;
    return ctx.reply.ok();
  }
  if (equals_ignore_case(ctx.args[2], "off")) {
    mode = ReplyMode::kOff;
  } else if (equals_ignore_case(ctx.args[2], "skip")) {
    if (mode != ReplyMode::kOff) mode = ReplyMode::kSkipNext;
  } else {
    ctx.reply.error(kSyntaxError);
  }
}

/* CLIENT NO-EVICT ON | OFF, CLIENT NO-TOUCH ON | OFF */
void client_switch(Context& ctx, core::Published<bool> Client::*is_on) {
  const bool on = equals_ignore_case(ctx.args[2], "on");
  if (!on && !equals_ignore_case(ctx.args[2], "off")) return ctx.reply.error(kSyntaxError);
  ctx.client.*is_on = on;
  ctx.reply.ok();
}

/* CLIENT PAUSE timeout [WRITE | ALL] */
void client_pause(Context& ctx) {
  if (ctx.args.size() > 4) return ctx.reply.error(kSyntaxError);
  PauseGate::Mode mode = PauseGate::Mode::kAll;
  if (ctx.args.size() == 4) {
    if (equals_ignore_case(ctx.args[3], "write")) {
      mode = PauseGate::Mode::kWrites;
    } else if (!equals_ignore_case(ctx.args[3], "all")) {
      return ctx.reply.error("ERR CLIENT PAUSE mode must be WRITE or ALL");
    }
  }
  const auto timeout_ms = core::parse_int64(ctx.args[2]);
  if (!timeout_ms) return ctx.reply.error(protocol::kTimeoutNotAnInteger);
  if (*timeout_ms < 0) return ctx.reply.error(protocol::kNegativeTimeout);
  if (*timeout_ms > std::numeric_limits<int64_t>::max() - ctx.now_ms) {
    return ctx.reply.error("ERR timeout is out of range");
  }
  PauseGate& pause = ctx.services.pause;
  pause.pause(mode, ctx.now_ms + *timeout_ms, ctx.now_ms);
  // Inside EXEC, CLIENT PAUSE cannot wait for running writes, so these writes may end after the
  // reply to CLIENT PAUSE.
  if (ctx.in_exec) return ctx.reply.ok();
  DeferredReply reply = defer_reply(ctx.services.clients, ctx.client.id);
  pause.drain([end = reply.end] { end({}); });
  ctx.await(std::move(reply.awaited));
}

/* CLIENT UNPAUSE */
void client_unpause(Context& ctx) {
  ctx.services.pause.end();
  ctx.reply.ok();
}

/* CLIENT UNBLOCK client-id [TIMEOUT | ERROR] */
void client_unblock(Context& ctx) {
  if (ctx.args.size() > 4) {
    return ctx.reply.error(protocol::wrong_subcommand("UNBLOCK", "CLIENT"));
  }
  const bool has_error = ctx.args.size() == 4 && equals_ignore_case(ctx.args[3], "error");
  if (ctx.args.size() == 4 && !has_error && !equals_ignore_case(ctx.args[3], "timeout")) {
    return ctx.reply.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
  }
  const auto id = core::parse_int64(ctx.args[2]);
  if (!id) return ctx.reply.error(kNotAnInteger);
  const auto client = ctx.services.clients.find(static_cast<uint64_t>(*id));
  Unblock state = Unblock::kAllowed;
  const Unblock request = has_error ? Unblock::kWithError : Unblock::kAsByTimeout;
  if (client == nullptr || !client->unblock.compare_exchange_strong(state, request)) {
    return ctx.reply.integer(0);
  }
  if (client->wake) client->wake();
  ctx.reply.integer(1);
}

constexpr uint32_t kOwn = kNoScript | kLoading | kStale;
constexpr uint32_t kOthers = kOwn | kAdmin;

constexpr Command kClientSubcommands[] = {
    {.name = "caching",
     .arity = 3,
     .since = "6.0.0",
     .summary = "Sets whether the keys of the next command are tracked",
     .syntax = "YES | NO",
     .handler = client_caching},
    {.name = "getname",
     .arity = 2,
     .since = "2.6.9",
     .summary = "Returns the name of the connection",
     .handler = client_getname},
    {.name = "getredir",
     .arity = 2,
     .since = "6.0.0",
     .summary = "Returns the client that invalidation messages are redirected to",
     .handler = client_getredir},
    {.name = "id",
     .arity = 2,
     .since = "5.0.0",
     .summary = "Returns the id of the connection",
     .handler = client_id},
    {.name = "info",
     .arity = 2,
     .since = "6.2.0",
     .summary = "Describes the connection",
     .tips = kVaryingOutput,
     .handler = client_info},
    {.name = "kill",
     .arity = -3,
     .flags = kOthers,
     .since = "2.4.0",
     .summary = "Closes connections",
     .complexity = "O(N) where N is the number of client connections",
     .syntax = "address | ([ID client-id ...] [TYPE (NORMAL | MASTER | REPLICA | "
               "PUBSUB | SLAVE)] [USER username] [ADDR address] [LADDR address] "
               "[SKIPME (YES | NO)] [MAXAGE seconds:integer]) ...",
     .handler = client_kill},
    {.name = "list",
     .arity = -2,
     .flags = kOthers,
     .since = "2.4.0",
     .summary = "Describes the connections",
     .complexity = "O(N) where N is the number of client connections",
     .syntax = "[ID client-id ...] [TYPE (NORMAL | MASTER | REPLICA | PUBSUB)] "
               "[USER username] [ADDR address] [LADDR address] "
               "[SKIPME (YES | NO)] [MAXAGE seconds:integer]",
     .tips = kVaryingOutput,
     .handler = client_list},
    {.name = "no-evict",
     .arity = 3,
     .flags = kOthers,
     .since = "7.0.0",
     .summary = "Keeps the connection when memory for clients is short",
     .syntax = "ON | OFF",
     .handler = calls<client_switch, &Client::no_evict>},
    {.name = "no-touch",
     .arity = 3,
     .since = "7.2.0",
     .summary = "Leaves the idle time of keys alone when this connection reads them",
     .syntax = "ON | OFF",
     .handler = calls<client_switch, &Client::no_touch>},
    {.name = "pause",
     .arity = -3,
     .flags = kOthers,
     .since = "2.9.50",
     .summary = "Delays commands for some time",
     .syntax = "timeout [WRITE | ALL]",
     .handler = client_pause},
    {.name = "reply",
     .arity = 3,
     .since = "3.2.0",
     .summary = "Chooses whether commands are answered",
     .syntax = "ON | OFF | SKIP",
     .handler = client_reply},
    {.name = "setinfo",
     .arity = 4,
     .since = "7.2.0",
     .summary = "Records which library the client uses",
     .syntax = "LIB-NAME libname | LIB-VER libver",
     .handler = client_setinfo},
    {.name = "setname",
     .arity = 3,
     .since = "2.6.9",
     .summary = "Names the connection",
     .syntax = "connection-name",
     .handler = client_setname},
    {.name = "tracking",
     .arity = -3,
     .since = "6.0.0",
     .summary = "Notifies the client when keys that it has read change",
     .complexity = "O(1). Some options may introduce additional complexity.",
     .syntax = "(ON | OFF) [REDIRECT client-id:integer] [PREFIX prefix ...] [BCAST] "
               "[OPTIN] [OPTOUT] [NOLOOP]",
     .handler = client_tracking},
    {.name = "trackinginfo",
     .arity = 2,
     .since = "6.2.0",
     .summary = "Returns the client's settings of CLIENT TRACKING",
     .handler = client_trackinginfo},
    {.name = "unblock",
     .arity = -3,
     .flags = kOthers,
     .since = "5.0.0",
     .summary = "Ends the waiting of a client in a blocking command",
     .complexity = "O(log N) where N is the number of client connections",
     .syntax = "client-id [TIMEOUT | ERROR]",
     .handler = client_unblock},
    {.name = "unpause",
     .arity = 2,
     .flags = kOthers | kNotPaused,
     .since = "6.2.0",
     .summary = "Ends a pause by CLIENT PAUSE",
     .complexity = "O(N) Where N is the number of paused clients",
     .handler = client_unpause},
};

const Command kClientRows[] = {
    {.name = "client",
     .since = "2.4.0",
     .summary = "Groups the commands about connections",
     .subcommands = kClientSubcommands},
};

}  // namespace

const CommandFamily kClientCommands{
    {.flags = kOwn, .categories = kConnection, .group = "connection", .complexity = "O(1)"},
    kClientRows};

}  // namespace server
