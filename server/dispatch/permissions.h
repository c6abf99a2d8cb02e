// SPDX-License-Identifier: MIT
//
// Whether a user may run a command with its arguments: the rules of acl/ held against the keys and
// channels that the command's row names.
//
// Invariants: what is checked is what for_each_key() visits, which is what EXEC locks.
// Thread safety: functions of constants and of the session, on its thread.
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
class Session;
struct Environment;
struct SessionUser;

namespace acl {
class CommandTable;
class User;
class Users;
enum class Reason : uint8_t;
}  // namespace acl

// Why a command must not run. `argument` is the index of the key or channel.
struct Denial {
  acl::Reason reason;
  size_t argument = 0;
};

struct DryRun {
  bool is_allowed = false;
  std::string lack;  // a text for people
};

Needs needs_of(const Command& row);

// Nothing if the user may run it. REQUIRES: the arity holds.
std::optional<Denial> denial_of(const acl::User& user, const RegisteredCommand& command,
                                Arguments args);

// As has_rights(), at the cost of few instructions; false as well for whatever is not plain: all
// but the first argument's pattern, of the root selector, if that is a prefix.
bool has_plain_rights(const SessionUser& identity, uint64_t version,
                      const RegisteredCommand& command, Arguments args);
// Whether rights_fault() has nothing to say of the user's rules, at the cost of few instructions.
// False also when the users have changed. REQUIRES: the arity holds; a user that is logged in.
bool has_rights(const SessionUser& identity, const acl::Users& users,
                const RegisteredCommand& command, Arguments args);
// The reply to ctx.args when the session's user must not run ctx.command, which is logged then;
// else empty. Follows changes of the users: a session whose user is gone ends.
std::string rights_fault(const Context& ctx);
// For a client that waits: false if the session must end, because of what has become of its user.
bool keeps_rights(const Environment& environment, Session& session);
// ACL DRYRUN: allowed, or what the user lacks. Errors: the reply.
core::Result<DryRun> dry_run(const Registry& registry, const acl::User& user, Arguments args);
// For ACL LOG.
void log_failed_login(const Context& ctx, std::string_view user);

// The commands as access rules know them.
acl::CommandTable acl_table_of(const Registry& registry);

}  // namespace server
