// SPDX-License-Identifier: MIT
//
// Permissions: checks whether a user may run a command with its arguments. Applies the rules of
// acl/ to the keys and channels that the command uses according to its row in the command table.
//
// Invariants: exactly the keys that for_each_key() visits are checked. EXEC locks the same keys.
// Thread safety: functions that take a session, its user or a context must run on the session's
// thread. Any thread may call the others.
// Source: https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "server/dispatch/command.h"

namespace server {

class Context;
class Registry;
struct SessionUser;

namespace acl {
class CommandTable;
class User;
class Users;
enum class Reason : uint8_t;
}  // namespace acl

// The reason why a command must not run. `argument` is the index of the denied key or channel.
struct Denial {
  acl::Reason reason;
  size_t argument = 0;
};

inline constexpr std::string_view kNotAuthenticated = "NOAUTH Authentication required.";
inline constexpr std::string_view kNotInTransaction =
    "ERR Command not allowed inside a transaction";

struct DryRun {
  bool is_allowed = false;
  std::string lack;  // text for the user that names the missing permission
};

Needs needs_of(const Command& row);

// Returns nullopt if the user may run the command. REQUIRES: the number of arguments fits the
// command's arity.
std::optional<Denial> denial_of(const acl::User& user, const RegisteredCommand& command,
                                Arguments args);

// Fast check of the simple cases: the command has no key, or its only key is the first argument.
// The key must match a prefix pattern of the root selector. If has_plain_rights() returns false,
// has_rights() must be called.
bool has_plain_rights(const SessionUser& identity, uint64_t version,
                      const RegisteredCommand& command, Arguments args);
// Returns true if the user's rules allow the command. Also returns
// false if the access rules have changed since `identity` was refreshed. REQUIRES: the number of
// arguments fits the command's arity; the user is logged in.
bool has_rights(const SessionUser& identity, const acl::Users& users,
                const RegisteredCommand& command, Arguments args);
// Returns the error reply if the session's user may not run ctx.command with ctx.args, and logs the
// denial. Also returns an error if the client is not logged in, or MULTI does not allow the
// command. Otherwise returns an empty text. Refreshes the user's permissions first. If the user was
// deleted, or may no longer listen to a subscribed channel, the connection closes after the reply.
std::string rights_fault(Context& ctx);
// Implements ACL DRYRUN: returns whether the command is allowed, or which permission is missing.
// Errors: the error reply.
core::Result<DryRun> dry_run(const Registry& registry, const acl::User& user, Arguments args);
// Adds an entry about a failed login to ACL LOG.
void log_failed_login(const Context& ctx, std::string_view user);

// Returns the command table with which ACL rules are parsed and checked.
acl::CommandTable acl_table_of(const Registry& registry);

}  // namespace server
