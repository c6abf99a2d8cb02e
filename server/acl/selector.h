// SPDX-License-Identifier: MIT
//
// Selector: one set of rights: commands, and the keys and channels that they may be used with. A
// user has a root selector, and any number of further ones in parentheses.
//
// Invariants: describe() gives rules that make an equal selector of an empty one.
// Thread safety: none; constant while it is part of a published user.
// Source: https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/, "Selectors".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/glob.h"
#include "core/result.h"
#include "server/acl/command_rules.h"

namespace server::acl {

// Of acl-pubsub-default: which channels a new selector may use. In the option's order.
enum class ChannelDefault : uint8_t { kAllChannels, kResetChannels };

// What a command does with a key's value.
enum Access : uint8_t { kNoAccess = 0, kRead = 1, kWriteAccess = 2, kReadWrite = 3 };

class Selector {
 public:
  Selector(const CommandTable& table, ChannelDefault channels);

  // One rule about commands, keys or channels. Errors: Redis' text.
  core::Result<> apply(std::string_view rule);
  void reset(ChannelDefault channels);
  void simplify() { commands_.simplify(); }

  const CommandRules& commands() const { return commands_; }
  bool allows_all_keys() const { return all_keys_; }
  bool allows_all_channels() const { return all_channels_; }
  // Whether one pattern grants all of `access` (bits of Access) to the key.
  bool allows_key(std::string_view key, uint8_t access) const;
  // As allows_key(), at the cost of few instructions; false as well for what is not so simple.
  bool allows_key_plainly(std::string_view key, uint8_t access) const {
    if (all_keys_) return true;
    const uint64_t head = core::Glob::head_of(key);
    for (const KeyPattern& pattern : keys_) {
      if ((pattern.access & access) == access && pattern.glob.is_prefix_with(key, head)) {
        return pattern.glob.matches_behind_head(key);
      }
    }
    return false;
  }
  // A pattern of PSUBSCRIBE must be granted literally.
  bool allows_channel(std::string_view channel, bool is_pattern) const;
  bool is_unrestricted() const { return all_keys_ && all_channels_ && commands_.allows_all(); }

  // "~* %R~x", "&a &b": as ACL GETUSER shows them.
  std::string key_text() const;
  std::string channel_text() const;
  // All rules, as ACL LIST shows them.
  std::string describe() const;

 private:
  struct KeyPattern {
    std::string text;
    core::Glob glob;
    uint8_t access;
  };
  struct ChannelPattern {
    std::string text;
    core::Glob glob;
  };

  core::Result<> add_key_pattern(std::string_view rule);
  core::Result<> add_channel_pattern(std::string_view pattern);

  CommandRules commands_;
  bool all_keys_ = false;
  bool all_channels_ = false;
  std::vector<KeyPattern> keys_;
  std::vector<ChannelPattern> channels_;
};

}  // namespace server::acl
