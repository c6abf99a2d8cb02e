// SPDX-License-Identifier: MIT
//
// User: a name, passwords and rights. Rules build one up; once published it does not change any
// more, so that sessions check their commands against it without a lock.
//
// Invariants: describe() gives rules that make an equal user of an empty one. There is always a
// root selector.
// Thread safety: none while rules are applied; constant as a UserPtr.
// Source: https://redis.io/docs/latest/commands/acl-setuser/; odd cases measured on Redis 7.0.15.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/acl/password.h"
#include "server/acl/selector.h"

namespace server::acl {

// A rule that was refused.
struct RuleFault {
  std::string rule;
  std::string reason;        // Redis' text
  bool is_unclosed = false;  // a selector that opens with `rule` does not end
};

class User {
 public:
  // A new one: off, without passwords and rights, but for the channels.
  User(std::string name, const CommandTable& table, ChannelDefault channels);

  // One rule, a whole selector in parentheses included. Errors: Redis' text, without the rule.
  core::Result<> apply(std::string_view rule);
  // All rules; parentheses may enclose several words. To be called once before the user is
  // published. Returns what is wrong, if anything.
  std::optional<RuleFault> apply_all(std::span<const std::string_view> words);

  // For selectors made from now on, by `reset` too.
  void set_channel_default(ChannelDefault channels) { new_channels_ = channels; }

  const std::string& name() const { return name_; }
  bool is_on() const { return is_on_; }
  // Any password will do.
  bool has_no_password() const { return has_no_password_; }
  const std::vector<PasswordHash>& passwords() const { return passwords_; }
  // Looks at all of them, in constant time.
  bool has_password(const PasswordHash& hash) const;
  // The root selector comes first.
  std::span<const Selector> selectors() const { return selectors_; }
  bool is_unrestricted() const { return is_unrestricted_; }
  // Whether a subscription made by this user may go on.
  bool allows_channel(std::string_view channel, bool is_pattern) const;

  // "on", "nopass"…: as ACL GETUSER shows them.
  std::vector<std::string_view> flag_names() const;
  // The rules that ACL LIST shows behind the name.
  std::string describe() const;

  // Tells users apart that had the same name one after the other; given by Users.
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

// Whether a user may be called so: without spaces and zero bytes, not empty.
bool is_user_name(std::string_view name);

}  // namespace server::acl
