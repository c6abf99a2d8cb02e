// SPDX-License-Identifier: MIT
//
// The commands on the state of a connection: PING, ECHO, QUIT, RESET, SELECT, HELLO and AUTH.
#include "server/commands/connection/connection_commands.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "server/base/process/compatibility.h"
#include "server/commands/connection/client_name.h"
#include "server/commands/families.h"
#include "server/commands/keys/database_index.h"
#include "server/commands/pair_writer.h"
#include "server/commands/server/module_list.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/dispatch/dispatcher.h"
#include "server/dispatch/permissions.h"
#include "server/session/acl/users.h"
#include "server/session/observer.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/session_user.h"

namespace server {
namespace {

constexpr std::string_view kHelloBeforeLogin =
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
    "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP "
    "protocol version at the same time";

/* PING [message] */
void ping(Context& ctx) {
  if (ctx.args.size() > 2) {
    return ctx.reply.error(protocol::wrong_arity("ping"));
  }
  if (ctx.session.is_in_subscriber_mode()) {
    // The reply to PING from a subscriber has the form of a message, so that the client's message
    // loop can read the reply.
    ctx.reply.array(2);
    ctx.reply.bulk("pong");
    return ctx.reply.bulk(ctx.args.size() == 2 ? ctx.args[1] : "");
  }
  if (ctx.args.size() == 2) return ctx.reply.bulk(ctx.args[1]);
  ctx.reply.status("PONG");
}

/* ECHO message */
void echo(Context& ctx) {
  ctx.reply.bulk(ctx.args[1]);
}

/* QUIT */
void quit(Context& ctx) {
  ctx.close_after_reply();
  ctx.reply.ok();
}

/* RESET */
void reset(Context& ctx) {
  Session& session = ctx.session;
  discard_transaction(ctx.keyspace(), session);
  unsubscribe_all(ctx.services.pubsub, session);
  stop_tracking(ctx.services.tracking, session);
  ctx.services.observer.stop_monitor(session);
  session.client->database = 0;
  session.client->resp = protocol::RespVersion::kResp2;
  // After CLIENT REPLY SKIP, RESET has no reply, and the dispatcher then ends the mode.
  if (session.reply_mode != ReplyMode::kSkipThis) session.reply_mode = ReplyMode::kOn;
  session.client->no_touch = false;
  session.client->reads_replicas = false;
  session.client->no_evict = false;
  set_default_user(session, ctx.services.users);
  session.client->names.change([](ClientNames::Values& names) { names.name.clear(); });
  ctx.reply.set_version(session.client->resp);
  ctx.reply.status("RESET");
}

/* SELECT index */
void select(Context& ctx) {
  const auto index = parse_database_index(ctx.args[1], ctx.keyspace().database_count());
  const bool is_another = index ? *index != 0 : index.error().code == core::ErrorCode::kOutOfRange;
  if (is_another && has_one_database(ctx)) {
    return ctx.reply.error(not_in_cluster("SELECT"));
  }
  if (!index) return ctx.reply.error(index.error().message);
  ctx.client.database = static_cast<int>(*index);
  ctx.reply.ok();
}

// Login: the authenticated user, and the version of the user list when that user was found.
struct Login {
  acl::UserPtr user;  // null if the credentials are wrong; the ACL log has the failed attempt
  uint64_t version = 0;
};

Login try_login(const Context& ctx, std::string_view user, std::string_view password) {
  const acl::Users& users = ctx.services.users;
  const uint64_t version = users.version();
  Login login{users.authenticate(user, password), version};
  if (login.user != nullptr) return login;
  log_failed_login(ctx, user);
  return login;
}

void log_in(Session& session, Login login) {
  set_user(session, std::move(login.user), login.version);
  session.authenticated = true;
}

/* AUTH [username] password */
void auth(Context& ctx) {
  if (ctx.args.size() > 3) return ctx.reply.error(kSyntaxError);
  const bool named = ctx.args.size() == 3;
  if (!named && ctx.services.users.has_no_password()) {
    return ctx.reply.error(kNoPasswordToCheck);
  }
  Login login = try_login(ctx, named ? ctx.args[1] : acl::kDefaultUser, ctx.args.back());
  if (login.user == nullptr) return ctx.reply.error(kWrongPassword);
  log_in(ctx.session, std::move(login));
  ctx.reply.ok();
}

bool auth_hides(Arguments, size_t index) {
  return index > 0;
}

// Returns whether the argument is the user name or the password after the option AUTH.
bool hello_hides(Arguments args, size_t index) {
  for (size_t i = 2; i < index; ++i) {
    if (protocol::equals_ignore_case(args[i], "AUTH")) {
      if (index - i <= 2) return true;
      i += 2;
    } else if (protocol::equals_ignore_case(args[i], "SETNAME")) {
      i += 1;
    }
  }
  return false;
}

struct HelloOptions {
  int64_t protocol = 0;  // requested version of the protocol; 0 keeps the present one
  std::optional<std::string_view> user;
  std::string_view password;
  std::optional<std::string_view> name;
};

core::Result<HelloOptions> parse_hello(Arguments args) {
  HelloOptions options;
  if (args.size() > 1) {
    const auto version = core::parse_int64(args[1]);
    if (!version) return core::Error{"ERR Protocol version is not an integer or out of range"};
    if (*version < 2 || *version > 3) return core::Error{"NOPROTO unsupported protocol version"};
    options.protocol = *version;
  }
  for (size_t i = 2; i < args.size(); ++i) {
    const size_t left = args.size() - i - 1;
    if (protocol::equals_ignore_case(args[i], "AUTH") && left >= 2) {
      options.user = args[i + 1];
      options.password = args[i + 2];
      i += 2;
    } else if (protocol::equals_ignore_case(args[i], "SETNAME") && left >= 1) {
      options.name = args[i + 1];
      i += 1;
    } else {
      return core::Error{fmt::format("ERR Syntax error in HELLO option '{}'", args[i])};
    }
  }
  return options;
}

/* HELLO [protover [AUTH username password] [SETNAME clientname]] */
void hello(Context& ctx) {
  const auto options = parse_hello(ctx.args);
  if (!options) return ctx.reply.error(options.error().message);
  Session& session = ctx.session;
  // HELLO changes nothing until all its options have been validated.
  Login login;
  if (options->user) {
    login = try_login(ctx, *options->user, options->password);
    if (login.user == nullptr) return ctx.reply.error(kWrongPassword);
  } else if (!session.authenticated) {
    return ctx.reply.error(kHelloBeforeLogin);
  }
  const std::string_view fault = options->name ? client_name_fault(*options->name) : "";
  if (!fault.empty()) return ctx.reply.error(fault);
  if (options->user) log_in(session, std::move(login));
  if (options->name) {
    session.client->names.change([&](ClientNames::Values& names) { names.name = *options->name; });
  }
  if (options->protocol != 0) {
    session.client->resp = static_cast<protocol::RespVersion>(options->protocol);
    ctx.reply.set_version(session.client->resp);
  }
  const std::string zone = ctx.config().text(OptionId::kAvailabilityZone);
  ctx.reply.map(zone.empty() ? 7 : 8);
  PairWriter pairs(ctx.reply);
  pairs.text("server", "redis");
  pairs.text("version", kCompatibleRedisVersion);
  pairs.integer("proto", static_cast<int64_t>(protocol::RespVersion{session.client->resp}));
  pairs.integer("id", session.client->id);
  pairs.text("mode", ctx.environment.state.is_in_cluster() ? "cluster" : "standalone");
  pairs.text("role", ctx.environment.state.is_replica ? "replica" : "master");
  // As in Valkey 8.1, HELLO reports this server's availability zone, because some clients prefer
  // replicas in their own zone.
  if (!zone.empty()) pairs.text("availability_zone", zone);
  ctx.reply.bulk("modules");
  write_module_list(ctx.reply);
}

constexpr uint32_t kAnytime = kNoScript | kLoading | kStale | kFast | kNoAuth | kAllowBusy;

// AUTH and HELLO are not paused: a client that ends a pause may have to log in first.
const Command kConnectionRows[] = {
    {.name = "auth",
     .arity = -2,
     .flags = kAnytime | kNotPaused,
     .summary = "Logs the connection in",
     .complexity = "O(N) where N is the number of passwords defined for the user",
     .syntax = "[username] password",
     .handler = auth,
     .hides = auth_hides},
    {.name = "echo",
     .arity = 2,
     .flags = kLoading | kStale | kFast,
     .summary = "Returns the message",
     .syntax = "message",
     .handler = echo},
    {.name = "hello",
     .arity = -1,
     .flags = kAnytime | kNotPaused,
     .since = "6.0.0",
     .summary = "Chooses the protocol version and describes the server",
     .syntax = "[protover [AUTH username password:string] [SETNAME clientname]]",
     .handler = hello,
     .hides = hello_hides},
    {.name = "ping",
     .arity = -1,
     .flags = kFast | kReportsMisconf | kInSubscriberMode | kInJournal,
     .summary = "Answers PONG, or the message",
     .syntax = "[message]",
     .tips = "request_policy:all_shards response_policy:all_succeeded",
     .handler = ping},
    {.name = "quit",
     .arity = -1,
     .flags = kAnytime | kImmediate | kInSubscriberMode,
     .summary = "Closes the connection",
     .handler = quit},
    {.name = "reset",
     .arity = 1,
     .flags = kAnytime | kImmediate | kInSubscriberMode,
     .since = "6.2.0",
     .summary = "Puts the connection back to its start",
     .handler = reset},
    {.name = "select",
     .arity = 2,
     .flags = kLoading | kStale | kFast | kInJournal,
     .summary = "Chooses the database",
     .syntax = "index",
     .handler = select},
};

}  // namespace

const CommandFamily kConnectionCommands{
    {.categories = kConnection, .group = "connection", .since = "1.0.0", .complexity = "O(1)"},
    kConnectionRows};

}  // namespace server
