// SPDX-License-Identifier: MIT
#include "server/session/acl/command_rules.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "protocol/arguments.h"
#include "server/base/config/words.h"
#include "server/session/acl/rule_error.h"

namespace server::acl {
namespace {

// Limit on the number of rules +command|first-argument. The number is limited, because the check of
// one command may compare its argument with all of these rules.
constexpr size_t kFirstArgumentsMax = 128;

}  // namespace

CommandRules::CommandRules(const CommandTable& table)
    : table_(&table), bits_((table.size() + 63) / 64) {}

void CommandRules::set_all(bool allows) {
  std::ranges::fill(bits_, allows ? ~uint64_t{0} : 0);
  allows_future_ = allows;
  first_arguments_.clear();
  first_argument_count_ = 0;
  rules_.clear();
}

core::Result<> CommandRules::apply(std::string_view rule) {
  assert(!rule.empty() && (rule[0] == '+' || rule[0] == '-'));
  const bool allows = rule[0] == '+';
  const std::string_view what = rule.substr(1);
  if (protocol::equals_ignore_case(what, "@all")) {
    set_all(allows);
    return {};
  }
  if (what.starts_with('@')) {
    const auto bit = table_->category_bit(what.substr(1));
    if (!bit) return rule_error(kUnknownCommandRule);
    set_category(*bit, allows);
    record(allows, what);
    return {};
  }
  const auto command = table_->find(what);
  const bool is_argument_rule = allows && what.find('|') != std::string_view::npos && !command;
  if (is_argument_rule) return apply_argument_rule(what);
  if (!command) return rule_error(kUnknownCommandRule);
  set(*command, allows);
  record(allows, what);
  return {};
}

// Applies the rule +command|first-argument. REQUIRES: the text after '+' names no subcommand.
core::Result<> CommandRules::apply_argument_rule(std::string_view what) {
  const size_t bar = what.rfind('|');
  const std::string_view argument = what.substr(bar + 1);
  const auto command = table_->find(what.substr(0, bar));
  if (!command) return rule_error(kUnknownCommandRule);
  if (!table_->at(*command).parent.empty()) return rule_error(kSubcommandArgumentRule);
  if (argument.empty() || holds_separator(argument)) return rule_error(kRuleSyntax);
  if (!table_->at(*command).subcommands.empty()) return rule_error(kUnknownCommandRule);
  if (allows(*command, nullptr)) return {};
  auto& arguments = first_arguments_[*command];
  if (const std::string lowered = lower_case(argument); !arguments.contains(lowered)) {
    if (++first_argument_count_ > kFirstArgumentsMax) return rule_error(kTooManyArgumentRules);
    arguments.insert(lowered);
  }
  record(true, what);
  return {};
}

void CommandRules::set(size_t command, bool allows) {
  const uint64_t bit = uint64_t{1} << (command % 64);
  uint64_t& word = bits_[command / 64];
  word = allows ? word | bit : word & ~bit;
  if (const auto found = first_arguments_.find(command); found != first_arguments_.end()) {
    first_argument_count_ -= found->second.size();
    first_arguments_.erase(found);
  }
  for (const size_t subcommand : table_->at(command).subcommands) set(subcommand, allows);
}

void CommandRules::set_category(uint32_t bit, bool allows) {
  for (size_t i = 0; i < table_->size(); ++i) {
    if ((table_->at(i).categories & bit) != 0) set(i, allows);
  }
}

// A new rule for a command removes the earlier rules for this command and for its subcommands.
void CommandRules::record(bool allows, std::string_view what) {
  std::string name = lower_case(what);
  std::erase_if(rules_, [&](const Rule& rule) {
    return rule.what == name || (rule.what.size() > name.size() && rule.what.starts_with(name) &&
                                 rule.what[name.size()] == '|');
  });
  rules_.push_back({allows, std::move(name)});
}

bool CommandRules::allows_argument(size_t command, std::string_view argument) const {
  const auto found = first_arguments_.find(command);
  return found != first_arguments_.end() &&
         std::ranges::any_of(found->second, [&](const std::string& allowed) {
           return protocol::equals_ignore_case(argument, allowed);
         });
}

size_t CommandRules::denied_count() const {
  size_t allowed = 0;
  for (size_t i = 0; i < table_->size(); ++i) allowed += (bits_[i / 64] >> (i % 64)) & 1;
  return table_->size() - allowed;
}

bool CommandRules::has_effects_of(const CommandRules& other) const {
  return bits_ == other.bits_ && allows_future_ == other.allows_future_ &&
         first_arguments_ == other.first_arguments_;
}

// If a category rule and another rule make each other redundant, the category rule is retained,
// because it expresses the user's intention better. Dropping one rule can make another one
// ineffective: `-get` has no effect without the `+@read` before it. So rules are dropped until
// every remaining rule has an effect.
void CommandRules::simplify() {
  size_t before = 0;
  do {
    before = rules_.size();
    drop_rules_without_effect(/*categories=*/false);
    drop_rules_without_effect(/*categories=*/true);
  } while (rules_.size() < before);
}

void CommandRules::drop_rules_without_effect(bool categories) {
  for (size_t i = 0; i < rules_.size();) {
    if (rules_[i].what.starts_with('@') == categories && is_without_effect(i)) {
      rules_.erase(rules_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

bool CommandRules::is_without_effect(size_t dropped) const {
  CommandRules without(*table_);
  without.set_all(allows_future_);
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (i != dropped) (void)without.apply((rules_[i].allows ? '+' : '-') + rules_[i].what);
  }
  return without.has_effects_of(*this);
}

std::string CommandRules::text() const {
  std::string text = allows_future_ ? "+@all" : "-@all";
  for (const Rule& rule : rules_) {
    text += rule.allows ? " +" : " -";
    text += rule.what;
  }
  return text;
}

}  // namespace server::acl
