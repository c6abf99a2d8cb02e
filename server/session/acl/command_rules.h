// SPDX-License-Identifier: MIT
//
// CommandRules: the commands that one selector allows, as defined by +command, -command,
// +@category, +command|subcommand and +command|first-argument.
//
// Invariants: applying the rules of text() to an empty object gives an equal one. The text is
// short: it has at most one rule for each command, category and first argument. After simplify() it
// has no rule without effect.
// Thread safety: one thread at a time may change an object. It is constant once it is part of a
// published user.
// Source: https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/; corner cases
// measured on Redis 7.0.15.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/session/acl/command_table.h"

namespace server::acl {

// Errors of rules, in addition to kRuleSyntax.
inline constexpr std::string_view kUnknownCommandRule = "Unknown command or category name in ACL";
inline constexpr std::string_view kSubcommandArgumentRule =
    "Allowing first-arg of a subcommand is not supported";
inline constexpr std::string_view kTooManyArgumentRules = "Too many first-arg rules";

class CommandRules {
 public:
  // Creates rules that allow no command.
  explicit CommandRules(const CommandTable& table);

  // Applies a rule that begins with + or -. Errors: the error text of Redis.
  core::Result<> apply(std::string_view rule);
  // Allows or denies all commands.
  void set_all(bool allows);

  // Returns whether the command may run. `first_argument` is the argument after its name, or null.
  bool allows(size_t command, const std::string_view* first_argument) const {
    if (allows(command)) [[likely]]
      return true;
    return !first_arguments_.empty() && first_argument != nullptr &&
           allows_argument(command, *first_argument);
  }
  // Returns whether the command may run with any arguments.
  bool allows(size_t command) const { return ((bits_[command / 64] >> (command % 64)) & 1) != 0; }
  // Returns whether every command of this and later versions is allowed.
  bool allows_all() const { return allows_future_ && denied_count() == 0; }

  // Returns the rules, such as "-@all +get +config|get".
  std::string text() const;
  // Removes rules that have no effect.
  void simplify();

 private:
  struct Rule {
    bool allows = false;
    // The lower-case name of a command or category, or a command with its first argument: "get",
    // "@read", "config|get", "select|0".
    std::string what;
  };

  bool allows_argument(size_t command, std::string_view argument) const;
  size_t denied_count() const;
  bool has_effects_of(const CommandRules& other) const;
  void drop_rules_without_effect(bool categories);
  bool is_without_effect(size_t rule) const;
  void set(size_t command, bool allows);
  void set_category(uint32_t bit, bool allows);
  core::Result<> apply_argument_rule(std::string_view what);
  void record(bool allows, std::string_view what);

  const CommandTable* table_;
  std::vector<uint64_t> bits_;
  bool allows_future_ = false;  // true if commands that a later version adds are allowed

  // The allowed first arguments, by the index of the command.
  std::map<size_t, std::set<std::string>> first_arguments_;
  // The number of allowed first arguments, summed over all commands.
  size_t first_argument_count_ = 0;
  // The rules, without the initial +@all or -@all.
  std::vector<Rule> rules_;
};

}  // namespace server::acl
