// SPDX-License-Identifier: MIT
#include "server/commands/strings/value_condition.h"

#include <string>

#include "core/keyspace/value_digest.h"
#include "protocol/arguments.h"

namespace server {

ValueCondition::Kind condition_kind(std::string_view word) {
  using Kind = ValueCondition::Kind;
  if (protocol::equals_ignore_case(word, "IFEQ")) return Kind::kEqual;
  if (protocol::equals_ignore_case(word, "IFNE")) return Kind::kNotEqual;
  if (protocol::equals_ignore_case(word, "IFDEQ")) return Kind::kDigestEqual;
  if (protocol::equals_ignore_case(word, "IFDNE")) return Kind::kDigestNotEqual;
  return Kind::kNone;
}

core::Result<bool> ValueCondition::holds_for(const Entry& entry) const {
  core::keyspace::IntegerText scratch;
  const std::string_view text = entry.text(scratch);
  if (kind == Kind::kEqual) return text == operand;
  if (kind == Kind::kNotEqual) return text != operand;
  // As in Redis, an operand of 16 characters is accepted even if some are not hexadecimal
  // digits. Such an operand is unequal to every digest.
  constexpr size_t kDigestSize = 16;
  if (operand.size() != kDigestSize) return core::Error{std::string(kNoDigest)};
  const bool is_equal = core::keyspace::parse_digest(operand) == core::keyspace::value_digest(text);
  return is_equal == (kind == Kind::kDigestEqual);
}

}  // namespace server
