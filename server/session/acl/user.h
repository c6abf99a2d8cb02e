// SPDX-License-Identifier: MIT
//
// User: a name, passwords and permissions, built by applying rules. A published user is immutable,
// so that sessions check their commands without a lock.
//
// Invariants: if the rules that describe() returns are applied to an empty user, the result equals
// this user. There is always a root selector.
// Thread safety: only one thread may use a User until it is published. A published User (UserPtr)
// never changes.
// Source: https://redis.io/docs/latest/commands/acl-setuser/; corner cases measured on Redis
// 7.0.15.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/session/acl/password.h"
#include "server/session/acl/selector.h"

namespace server::acl {

// A rejected rule, and the reason for its rejection.
struct RuleFault {
  std::string rule;
  std::string reason;        // reason for the rejection, in Redis' words
  bool is_unclosed = false;  // true if `rule` opens a selector without a closing parenthesis
};

class User {
 public:
  // Creates a user that is off, with no passwords. Its only permissions are the channels that
  // `channels` grants.
  User(std::string name, const CommandTable& table, ChannelDefault channels);

  // Applies one rule, or a whole selector in parentheses. Errors: the error text of Redis, without
  // the rule.
  core::Result<> apply(std::string_view rule);
  // Applies all rules; parentheses may enclose several words. Must be called once, before the user
  // is published. Returns the first error, if any.
  std::optional<RuleFault> apply_all(std::span<const std::string_view> arguments);

  // Sets which channels a selector permits before any rule is applied to it. Affects selectors that
  // are created later, including those that the rule `reset` creates.
  void set_channel_default(ChannelDefault channels) { new_channels_ = channels; }

  const std::string& name() const { return name_; }
  bool is_on() const { return is_on_; }
  // Returns whether the user is accepted without a correct password.
  bool has_no_password() const { return has_no_password_; }
  const std::vector<PasswordHash>& passwords() const { return passwords_; }
  // Returns whether the user has this password. Compares with all passwords, in constant time.
  bool has_password(const PasswordHash& hash) const;
  // Returns all selectors; the root selector is the first.
  std::span<const Selector> selectors() const { return selectors_; }
  bool is_unrestricted() const { return is_unrestricted_; }
  // Returns whether some selector allows the channel or the pattern. The server closes existing
  // subscriptions of the user that no selector allows.
  bool allows_channel(std::string_view channel, bool is_pattern) const;

  // Returns the flags in the format of ACL GETUSER, such as "on" and "nopass".
  std::vector<std::string_view> flag_names() const;
  // Returns the rules that ACL LIST shows after the name.
  std::string describe() const;

  // The id of the user, which Users assigns. It distinguishes users that had the same name at
  // different times. The new User object of a changed user may have the same id (users.h).
  uint64_t id = 0;

 private:
  enum class Sanitizing : uint8_t { kUnset, kSanitize, kSkip };

  core::Result<> apply_password_rule(std::string_view rule);
  core::Result<> add_selector(std::string_view text);
  void reset();

  const std::string name_;
  const CommandTable& table_;
  ChannelDefault new_channels_;
  bool is_on_ = false;
  bool has_no_password_ = false;
  bool is_unrestricted_ = false;
  Sanitizing sanitizing_ = Sanitizing::kUnset;
  std::vector<PasswordHash> passwords_;
  std::vector<Selector> selectors_;
};

// Returns whether the name is valid: not empty, without spaces or zero bytes.
bool is_user_name(std::string_view name);

}  // namespace server::acl
