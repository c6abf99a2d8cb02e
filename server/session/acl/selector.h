// SPDX-License-Identifier: MIT
//
// Selector: one set of permissions: the allowed commands, and the keys and channels that these
// commands may use. A user has a root selector, and any number of further selectors, which are
// written in parentheses.
//
// Invariants: if the rules that describe() returns are applied to an empty selector, the result
// equals this selector.
// Thread safety: one thread at a time may change a selector. It is constant once it is part of a
// published user.
// Source: https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/, "Selectors".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/glob.h"
#include "core/result.h"
#include "server/session/acl/command_rules.h"

namespace server::acl {

// The channels that a new selector allows. The enumerators have the order of the values of the
// option acl-pubsub-default.
enum class ChannelDefault : uint8_t { kAllChannels, kResetChannels };

// The ways in which a command accesses the value of a key.
enum Access : uint8_t { kNoAccess = 0, kRead = 1, kWriteAccess = 2, kReadWrite = 3 };

class Selector {
 public:
  Selector(const CommandTable& table, ChannelDefault channels);

  // Applies one rule about commands, keys or channels. Errors: the error text of Redis.
  core::Result<> apply(std::string_view rule);
  void reset(ChannelDefault channels);
  void simplify() { commands_.simplify(); }

  const CommandRules& commands() const { return commands_; }
  bool allows_all_keys() const { return all_keys_; }
  bool allows_all_channels() const { return all_channels_; }
  // Returns whether a single pattern grants all of `access` (bits of Access) to the key.
  bool allows_key(std::string_view key, uint8_t access) const;
  // Checks only the patterns that can be compared quickly. The result true means that the key is
  // allowed. After the result false, the caller must call allows_key().
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
  // Returns whether the channel is allowed. If `is_pattern` is true, `channel` is a pattern of
  // PSUBSCRIBE and must equal an allowed pattern.
  bool allows_channel(std::string_view channel, bool is_pattern) const;
  bool is_unrestricted() const { return all_keys_ && all_channels_ && commands_.allows_all(); }

  // These functions return the patterns in the format of ACL GETUSER: "~* %R~x", "&a &b".
  std::string key_text() const;
  std::string channel_text() const;
  // Returns all rules in the format of ACL LIST.
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
