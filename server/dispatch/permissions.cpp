// SPDX-License-Identifier: MIT
#include "server/dispatch/permissions.h"

#include <fmt/format.h>

#include <utility>

#include "core/clock.h"
#include "protocol/error_texts.h"
#include "server/dispatch/command_reply.h"
#include "server/dispatch/context.h"
#include "server/dispatch/registry.h"
#include "server/session/acl/access_log.h"
#include "server/session/acl/command_table.h"
#include "server/session/acl/user.h"
#include "server/session/acl/users.h"
#include "server/session/client_line.h"
#include "server/session/session_user.h"

namespace server {
namespace {

uint8_t access_of(uint16_t use) {
  const bool writes = (use & (kKeyInsert | kKeyDelete | kKeyUpdate)) != 0;
  const bool reads = (use & kKeyAccess) != 0;
  return static_cast<uint8_t>((reads ? acl::kRead : 0) | (writes ? acl::kWriteAccess : 0));
}

// Returns the index of the argument that is the first key denied by the selector. Returns 0 if no
// key is denied; argument 0 is the command's name and never a key.
size_t denied_key(const acl::Selector& selector, const Command& row, Arguments args) {
  if (selector.allows_all_keys() || row.keys[0].first == 0) return 0;
  const uint16_t exact_use = row.key_use == nullptr ? uint16_t{0} : row.key_use(args);
  size_t denied = 0;
  for_each_key(row, args, [&](size_t index, uint16_t use) {
    if (denied != 0 || (use & kNotAKey) != 0) return;
    const uint8_t access = access_of(exact_use != 0 ? exact_use : use);
    if (!selector.allows_key(args[index], access)) denied = index;
  });
  return denied;
}

// Returns the index of the argument that is the first channel denied by the selector. Returns 0 if
// no channel is denied.
size_t denied_channel(const acl::Selector& selector, const Command& row, Arguments args) {
  if (row.channels == ChannelUse::kNone || selector.allows_all_channels()) return 0;
  const size_t end = row.channels == ChannelUse::kPublishes ? 2 : args.size();
  for (size_t i = 1; i < end; ++i) {
    if (!selector.allows_channel(args[i], row.channels == ChannelUse::kListensToPatterns)) {
      return i;
    }
  }
  return 0;
}

bool allows_command(const acl::Selector& selector, const RegisteredCommand& command,
                    Arguments args) {
  const std::string_view* const first_argument = args.size() > 1 ? &args[1] : nullptr;
  return selector.commands().allows(command.index, first_argument) || command.has(kNoAuth);
}

std::optional<Denial> denial_of(const acl::Selector& selector, const RegisteredCommand& command,
                                Arguments args) {
  if (!allows_command(selector, command, args)) return Denial{acl::Reason::kCommand};
  const size_t key = denied_key(selector, *command.row, args);
  if (key != 0) return Denial{acl::Reason::kKey, key};
  const size_t channel = denied_channel(selector, *command.row, args);
  if (channel != 0) return Denial{acl::Reason::kChannel, channel};
  return std::nullopt;
}

std::string denial_reply(const Denial& denial, const RegisteredCommand& command) {
  switch (denial.reason) {
    case acl::Reason::kKey:
      return "NOPERM this user has no permissions to access one of the keys used as arguments";
    case acl::Reason::kChannel:
      return "NOPERM this user has no permissions to access one of the channels used as arguments";
    case acl::Reason::kCommand:
    case acl::Reason::kLogin:
      break;
  }
  return fmt::format("NOPERM this user has no permissions to run the '{}' command",
                     command.full_name);
}

std::string exec_denial_reply(const Denial& denial) {
  std::string_view reason = "no permission to execute the command or subcommand";
  if (denial.reason == acl::Reason::kKey) reason = "no permission to touch the specified keys";
  if (denial.reason == acl::Reason::kChannel) {
    reason = "no permission to access one of the channels used as arguments";
  }
  return fmt::format(
      "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "
      "call. This command is no longer allowed for the following reason: {}",
      reason);
}

// Returns the command, key or channel that ACL LOG shows.
std::string denied_object(const Denial& denial, const RegisteredCommand& command, Arguments args) {
  if (denial.reason == acl::Reason::kCommand) return command.full_name;
  return std::string(args[denial.argument].substr(0, acl::kLoggedBytesMax));
}

void log_denial(const Context& ctx, acl::Denied denied) {
  Session& session = ctx.session;
  size_t argument_bytes = 0;
  for (const std::string_view argument : ctx.args) argument_bytes += argument.size();
  denied.in_transaction = session.transaction.active || ctx.in_exec;
  denied.client =
      client_line(*session.client, ctx.environment.clock.monotonic_us(), argument_bytes);
  ctx.environment.users.log().add(std::move(denied), ctx.now_ms);
}

}  // namespace

Needs needs_of(const Command& row) {
  if (row.channels != ChannelUse::kNone) return {};
  const KeyRange& keys = row.keys[0];
  if (keys.first == 0) return {.kind = Needs::kNothing};
  const bool is_first_argument = keys.first == 1 && keys.last == 1 && keys.count_at == 0 &&
                                 (keys.use & kNotAKey) == 0 && row.keys[1].first == 0;
  if (!is_first_argument) return {};
  // If the use of the key depends on the arguments, has_plain_rights() demands read and write
  // access, so that it need not call key_use().
  const uint8_t access = row.key_use == nullptr ? access_of(keys.use) : uint8_t{acl::kReadWrite};
  return {.kind = Needs::kFirstArgument, .access = access};
}

std::optional<Denial> denial_of(const acl::User& user, const RegisteredCommand& command,
                                Arguments args) {
  // If all selectors deny the command, reports the denial of the selector whose failing check came
  // last. The order of the checks is: command, keys, channels.
  Denial furthest{acl::Reason::kCommand};
  for (const acl::Selector& selector : user.selectors()) {
    const auto denial = denial_of(selector, command, args);
    if (!denial) return std::nullopt;
    const bool is_further =
        denial->reason > furthest.reason ||
        (denial->reason == furthest.reason && denial->argument > furthest.argument);
    if (is_further) furthest = *denial;
  }
  return furthest;
}

// All calls in has_plain_rights() are inlined, except one that is its last step (a tail call). So
// the compiler need not save registers.
bool has_plain_rights(const SessionUser& identity, uint64_t version,
                      const RegisteredCommand& command, Arguments args) {
  if (identity.version != version) return false;
  const acl::Selector& root = identity.user->selectors().front();
  if (!root.commands().allows(command.index)) return false;
  if (command.needs.kind == Needs::kFirstArgument) {
    return root.allows_key_plainly(args[1], command.needs.access);
  }
  return command.needs.kind == Needs::kNothing;
}

bool has_rights(const SessionUser& identity, const acl::Users& users,
                const RegisteredCommand& command, Arguments args) {
  return identity.version == users.version() && !denial_of(*identity.user, command, args);
}

std::string rights_fault(Context& ctx) {
  Session& session = ctx.session;
  const acl::Users& users = ctx.environment.users;
  if (!refresh_user(session, users)) {
    ctx.close_after_reply();
    return std::string(kNotAuthenticated);
  }
  // As in Redis, a client that has not logged in can run commands as soon as the default user needs
  // no password.
  if (!session.authenticated && !users.is_open() && !ctx.command->has(kNoAuth)) {
    return std::string(kNotAuthenticated);
  }
  if (session.transaction.active && ctx.command->has(kNoMulti))
    return std::string(kNotInTransaction);
  if (session.origin != CommandOrigin::kClient) return {};
  if (session.identity.trusted_version == session.identity.version) return {};
  const auto denial = denial_of(*session.identity.user, *ctx.command, ctx.args);
  if (!denial) return {};
  log_denial(ctx, {.reason = denial->reason,
                   .object = denied_object(*denial, *ctx.command, ctx.args),
                   .user = session.identity.user->name()});
  return ctx.in_exec ? exec_denial_reply(*denial) : denial_reply(*denial, *ctx.command);
}

core::Result<DryRun> dry_run(const Registry& registry, const acl::User& user, Arguments args) {
  const RegisteredCommand* const command = registry.find(args);
  if (command == nullptr) return core::Error{fmt::format("ERR Command '{}' not found", args[0])};
  if (!command->arity_fits(args.size())) {
    return core::Error{protocol::wrong_arity(command->full_name)};
  }
  const auto denial = denial_of(user, *command, args);
  if (!denial) return DryRun{true, {}};
  if (denial->reason == acl::Reason::kCommand) {
    return DryRun{false, fmt::format("This user has no permissions to run the '{}' command",
                                     command->full_name)};
  }
  return DryRun{false, fmt::format("This user has no permissions to access the '{}' {}",
                                   args[denial->argument],
                                   denial->reason == acl::Reason::kKey ? "key" : "channel")};
}

void log_failed_login(const Context& ctx, std::string_view user) {
  log_denial(ctx, {.reason = acl::Reason::kLogin,
                   .object = std::string(ctx.args[0]),
                   .user = std::string(user.substr(0, acl::kLoggedBytesMax))});
}

acl::CommandTable acl_table_of(const Registry& registry) {
  std::vector<acl::CommandEntry> entries;
  const auto categories = all_categories();
  for (size_t i = 0; i < registry.size(); ++i) {
    const RegisteredCommand& command = registry.at(i);
    acl::CommandEntry entry{.name = command.full_name};
    if (command.container != nullptr) entry.parent = command.container->row->name;
    for (size_t bit = 0; bit < categories.size(); ++bit) {
      if (has_category(*command.row, categories[bit])) entry.categories |= uint32_t{1} << bit;
    }
    for (const RegisteredCommand* subcommand : command.subcommands) {
      entry.subcommands.push_back(subcommand->index);
    }
    entries.push_back(std::move(entry));
  }
  return {std::move(entries), categories};
}

}  // namespace server
