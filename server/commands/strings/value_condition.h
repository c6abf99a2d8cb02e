// SPDX-License-Identifier: MIT
//
// ValueCondition: IFEQ, IFNE, IFDEQ and IFDNE, the conditions of SET and DELEX on a key's present
// value.
//
// Thread safety: each object belongs to one thread. The object holds views of the command's
// arguments, which must outlive the object.
// Source: https://redis.io/docs/latest/commands/set
#pragma once

#include <cstdint>
#include <string_view>

#include "core/result.h"
#include "server/dispatch/context.h"

namespace server {

inline constexpr std::string_view kNoDigest = "ERR must be exactly 16 hexadecimal characters";

struct ValueCondition {
  enum class Kind : uint8_t { kNone, kEqual, kNotEqual, kDigestEqual, kDigestNotEqual };

  Kind kind = Kind::kNone;
  std::string_view operand;  // the expected value, or its digest as text

  bool is_set() const { return kind != Kind::kNone; }
  // Returns whether the condition holds for a missing key, which is unequal to every value.
  bool holds_for_missing_key() const {
    return kind == Kind::kNotEqual || kind == Kind::kDigestNotEqual;
  }
  // Returns whether the condition holds for the entry. REQUIRES: is_set(), and the entry is a
  // string. Errors: the condition is on a digest, and the operand does not have 16 characters.
  core::Result<bool> holds_for(const Entry& entry) const;
};

// Parses the word IFEQ, IFNE, IFDEQ or IFDNE. Returns kNone for any other word.
ValueCondition::Kind condition_kind(std::string_view word);

}  // namespace server
