// SPDX-License-Identifier: MIT
#include "server/session/acl/selector.h"

#include <algorithm>
#include <cctype>

#include "protocol/arguments.h"
#include "server/base/config/words.h"
#include "server/session/acl/rule_error.h"

namespace server::acl {
namespace {

using protocol::equals_ignore_case;

constexpr std::string_view kBehindAllKeys =
    "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have "
    "any effect. Try 'resetkeys' to start with an empty list of patterns";
constexpr std::string_view kBehindAllChannels =
    "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not "
    "have any effect. Try 'resetchannels' to start with an empty list of channels";

// The access that a prefix such as "%RW~" grants, and the prefix's length. Without a prefix both
// members are 0.
struct AccessPrefix {
  uint8_t access = kNoAccess;
  size_t size = 0;
};

AccessPrefix parse_access(std::string_view rule) {
  uint8_t access = kNoAccess;
  for (size_t i = 1; i < rule.size(); ++i) {
    if (rule[i] == '~') return access == kNoAccess ? AccessPrefix{} : AccessPrefix{access, i + 1};
    const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(rule[i])));
    const uint8_t added = letter == 'R' ? kRead : letter == 'W' ? kWriteAccess : kNoAccess;
    if (added == kNoAccess || (access & added) != 0) return {};
    access |= added;
  }
  return {};
}

}  // namespace

Selector::Selector(const CommandTable& table, ChannelDefault channels)
    : commands_(table), all_channels_(channels == ChannelDefault::kAllChannels) {}

void Selector::reset(ChannelDefault channels) {
  commands_.set_all(false);
  all_keys_ = false;
  keys_.clear();
  all_channels_ = channels == ChannelDefault::kAllChannels;
  channels_.clear();
}

core::Result<> Selector::apply(std::string_view rule) {
  const bool is_all_keys = equals_ignore_case(rule, "allkeys") || rule == "~*";
  const bool is_all_channels = equals_ignore_case(rule, "allchannels") || rule == "&*";
  const bool is_all_commands = equals_ignore_case(rule, "allcommands");
  if (is_all_keys || equals_ignore_case(rule, "resetkeys")) {
    all_keys_ = is_all_keys;
    keys_.clear();
  } else if (is_all_channels || equals_ignore_case(rule, "resetchannels")) {
    all_channels_ = is_all_channels;
    channels_.clear();
  } else if (is_all_commands || equals_ignore_case(rule, "nocommands")) {
    commands_.set_all(is_all_commands);
  } else if (rule.starts_with('~') || rule.starts_with('%')) {
    return add_key_pattern(rule);
  } else if (rule.starts_with('&')) {
    return add_channel_pattern(rule.substr(1));
  } else if (rule.starts_with('+') || rule.starts_with('-')) {
    return commands_.apply(rule);
  } else {
    return rule_error(kRuleSyntax);
  }
  return {};
}

core::Result<> Selector::add_key_pattern(std::string_view rule) {
  if (all_keys_) return rule_error(kBehindAllKeys);
  const AccessPrefix prefix =
      rule.starts_with('%') ? parse_access(rule) : AccessPrefix{kReadWrite, 1};
  if (prefix.access == kNoAccess) return rule_error(kRuleSyntax);
  const std::string_view pattern = rule.substr(prefix.size);
  if (holds_separator(pattern)) return rule_error(kRuleSyntax);
  const auto present = std::ranges::find(keys_, pattern, &KeyPattern::text);
  if (present != keys_.end()) {
    present->access |= prefix.access;
  } else {
    keys_.push_back({std::string(pattern), core::Glob(pattern), prefix.access});
  }
  return {};
}

core::Result<> Selector::add_channel_pattern(std::string_view pattern) {
  if (all_channels_) return rule_error(kBehindAllChannels);
  if (holds_separator(pattern)) return rule_error(kRuleSyntax);
  if (std::ranges::find(channels_, pattern, &ChannelPattern::text) == channels_.end()) {
    channels_.push_back({std::string(pattern), core::Glob(pattern)});
  }
  return {};
}

bool Selector::allows_key(std::string_view key, uint8_t access) const {
  return all_keys_ || std::ranges::any_of(keys_, [&](const KeyPattern& pattern) {
           return (pattern.access & access) == access && pattern.glob.matches(key);
         });
}

bool Selector::allows_channel(std::string_view channel, bool is_pattern) const {
  return all_channels_ || std::ranges::any_of(channels_, [&](const ChannelPattern& pattern) {
           return is_pattern ? pattern.text == channel : pattern.glob.matches(channel);
         });
}

std::string Selector::key_text() const {
  if (all_keys_) return "~*";
  std::string text;
  for (const KeyPattern& pattern : keys_) {
    if (!text.empty()) text += ' ';
    text += pattern.access == kRead ? "%R~" : pattern.access == kWriteAccess ? "%W~" : "~";
    text += pattern.text;
  }
  return text;
}

std::string Selector::channel_text() const {
  if (all_channels_) return "&*";
  std::string text;
  for (const ChannelPattern& pattern : channels_) {
    if (!text.empty()) text += ' ';
    text += '&';
    text += pattern.text;
  }
  return text;
}

std::string Selector::describe() const {
  std::string text = key_text();
  if (!text.empty()) text += ' ';
  if (!all_channels_) text += "resetchannels ";
  const std::string channels = channel_text();
  if (!channels.empty()) text += channels + ' ';
  return text + commands_.text();
}

}  // namespace server::acl
