// SPDX-License-Identifier: MIT
//
// CommandRules: which commands one selector allows, as +command, -command, +@category,
// +command|subcommand and +command|first-argument say.
//
// Invariants: applying the rules of text() to an empty object gives an equal one. The text is
// short: at most one rule per command, category and first argument, and none without effect.
// Thread safety: none; constant while it is part of a published user.
// Source: https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/; odd cases
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
#include "server/acl/command_table.h"

namespace server::acl {

class CommandRules {
 public:
  // Nothing is allowed.
  explicit CommandRules(const CommandTable& table);

  // A rule that opens with + or -. Errors: Redis' text.
  core::Result<> apply(std::string_view rule);
  void allow_all();
  void deny_all();

  // Whether the command may run. `first_argument` is what stands behind its name, if anything.
  bool allows(size_t command, const std::string_view* first_argument) const {
    if (allows(command)) [[likely]]
      return true;
    return !first_arguments_.empty() && first_argument != nullptr &&
           allows_argument(command, *first_argument);
  }
  // With whatever arguments.
  bool allows(size_t command) const { return ((bits_[command / 64] >> (command % 64)) & 1) != 0; }
  // Every command of this version and of later ones.
  bool allows_all() const { return allows_future_ && denied_count() == 0; }

  // "-@all +get +config|get".
  std::string text() const;
  // Drops from the text what has no effect beside the other rules.
  void simplify();

 private:
  struct Rule {
    bool allows = false;
    std::string what;  // lower case: "get", "@read", "config|get", "select|0"
  };

  bool allows_argument(size_t command, std::string_view argument) const;
  size_t denied_count() const;
  bool has_effects_of(const CommandRules& other) const;
  void drop_rules_without_effect(bool categories);
  bool is_without_effect(size_t rule) const;
  void set(size_t command, bool allows);
  void set_category(uint32_t bit, bool allows);
  core::Result<> apply_argument_rule(std::string_view what);
  void note(bool allows, std::string_view what);

  const CommandTable* table_;
  std::vector<uint64_t> bits_;
  bool allows_future_ = false;  // of commands that a later version brings
  std::map<size_t, std::set<std::string>> first_arguments_;  // by command
  size_t first_argument_count_ = 0;                          // of all commands
  std::vector<Rule> rules_;                                  // after the first +@all or -@all
};

}  // namespace server::acl
