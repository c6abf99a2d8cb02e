// SPDX-License-Identifier: MIT
#include "server/session/acl/user.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "protocol/arguments.h"
#include "server/session/acl/rule_error.h"

namespace server::acl {
namespace {

using protocol::equals_ignore_case;

constexpr std::string_view kNoSuchPassword =
    "The password you are trying to remove from the user does not exist";
constexpr std::string_view kNotAHash =
    "The password hash must be exactly 64 characters and contain only lowercase hexadecimal "
    "characters";
constexpr std::string_view kTooMany = "Too many passwords or selectors";
// These limits bound the work of a login and of a permission check. A login is compared with all
// passwords of its user, and a command may be checked against all selectors.
constexpr size_t kPasswordsMax = 1024;
constexpr size_t kSelectorsMax = 1024;

// Joins the words of each selector, from '(' to ')', into one rule. Errors: a selector has no ')';
// the error names its first word.
core::Result<std::vector<std::string>> join_selectors(std::span<const std::string_view> arguments) {
  std::vector<std::string> rules;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view first = arguments[i];
    std::string rule(first);
    if (rule.starts_with('(')) {
      while (!rule.ends_with(')')) {
        if (++i == arguments.size()) return rule_error(first);
        rule += ' ';
        rule += arguments[i];
      }
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace

User::User(std::string name, const CommandTable& table, ChannelDefault channels)
    : name_(std::move(name)), table_(table), new_channels_(channels) {
  selectors_.emplace_back(table_, channels);
}

std::optional<RuleFault> User::apply_all(std::span<const std::string_view> arguments) {
  const auto rules = join_selectors(arguments);
  if (!rules) return RuleFault{rules.error().message, {}, true};
  for (const std::string& rule : *rules) {
    if (auto applied = apply(rule); !applied) return RuleFault{rule, applied.error().message};
  }
  for (Selector& selector : selectors_) selector.simplify();
  is_unrestricted_ = std::ranges::any_of(selectors_, &Selector::is_unrestricted);
  return std::nullopt;
}

core::Result<> User::apply(std::string_view rule) {
  if (rule.empty()) return {};
  if (equals_ignore_case(rule, "on") || equals_ignore_case(rule, "off")) {
    is_on_ = rule.size() == 2;
  } else if (equals_ignore_case(rule, "nopass")) {
    has_no_password_ = true;
    passwords_.clear();
  } else if (equals_ignore_case(rule, "resetpass")) {
    has_no_password_ = false;
    passwords_.clear();
  } else if (equals_ignore_case(rule, "sanitize-payload")) {
    sanitizing_ = Sanitizing::kSanitize;
  } else if (equals_ignore_case(rule, "skip-sanitize-payload")) {
    sanitizing_ = Sanitizing::kSkip;
  } else if (equals_ignore_case(rule, "reset")) {
    reset();
  } else if (equals_ignore_case(rule, "clearselectors")) {
    selectors_.erase(selectors_.begin() + 1, selectors_.end());
  } else if (std::string_view("><#!").find(rule.front()) != std::string_view::npos) {
    return apply_password_rule(rule);
  } else if (rule.starts_with('(') && rule.ends_with(')')) {
    return add_selector(rule.substr(1, rule.size() - 2));
  } else {
    return selectors_.front().apply(rule);
  }
  return {};
}

core::Result<> User::apply_password_rule(std::string_view rule) {
  const std::string_view value = rule.substr(1);
  const bool is_hashed = rule.front() == '#' || rule.front() == '!';
  const auto hash = is_hashed ? parse_hash(value) : hash_password(value);
  if (!hash) return rule_error(kNotAHash);
  const auto present = std::ranges::find(passwords_, *hash);
  if (rule.front() == '>' || rule.front() == '#') {
    if (present == passwords_.end()) {
      if (passwords_.size() == kPasswordsMax) return rule_error(kTooMany);
      passwords_.push_back(*hash);
    }
    has_no_password_ = false;
    return {};
  }
  if (present == passwords_.end()) return rule_error(kNoSuchPassword);
  passwords_.erase(present);
  return {};
}

core::Result<> User::add_selector(std::string_view text) {
  if (selectors_.size() == kSelectorsMax) return rule_error(kTooMany);
  Selector selector(table_, new_channels_);
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view rule = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (rule.empty()) continue;
    // A rule that ends with ')' is rejected, because in ACL LIST this character would look like the
    // end of the selector.
    if (rule.ends_with(')')) return rule_error(kRuleSyntax);
    if (auto applied = selector.apply(rule); !applied) return applied;
  }
  selectors_.push_back(std::move(selector));
  return {};
}

void User::reset() {
  is_on_ = false;
  has_no_password_ = false;
  passwords_.clear();
  sanitizing_ = Sanitizing::kSanitize;
  selectors_.erase(selectors_.begin() + 1, selectors_.end());
  selectors_.front().reset(new_channels_);
}

bool User::has_password(const PasswordHash& hash) const {
  bool found = false;
  for (const PasswordHash& password : passwords_) {
    // All passwords are compared, so that the time does not reveal which one matched.
    found |= is_same_hash(password, hash);
  }
  return found;
}

bool User::allows_channel(std::string_view channel, bool is_pattern) const {
  return std::ranges::any_of(selectors_, [&](const Selector& selector) {
    return selector.allows_channel(channel, is_pattern);
  });
}

std::vector<std::string_view> User::flag_names() const {
  std::vector<std::string_view> names{is_on_ ? "on" : "off"};
  if (has_no_password_) names.emplace_back("nopass");
  if (sanitizing_ == Sanitizing::kSkip) names.emplace_back("skip-sanitize-payload");
  if (sanitizing_ == Sanitizing::kSanitize) names.emplace_back("sanitize-payload");
  return names;
}

std::string User::describe() const {
  std::string text;
  for (const std::string_view flag : flag_names()) {
    text += flag;
    text += ' ';
  }
  for (const PasswordHash& password : passwords_) text += '#' + hash_text(password) + ' ';
  text += selectors_.front().describe();
  for (const Selector& selector : std::span(selectors_).subspan(1)) {
    text += " (" + selector.describe() + ')';
  }
  return text;
}

bool is_user_name(std::string_view name) {
  return !name.empty() && std::ranges::none_of(name, [](unsigned char c) {
    return std::isspace(c) != 0 || c == '\0';
  });
}

}  // namespace server::acl
