// SPDX-License-Identifier: MIT
//
// What several kinds of rules answer when they are wrong.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace server::acl {

inline constexpr std::string_view kRuleSyntax = "Syntax error";

inline core::Error rule_error(std::string_view text) {
  return {std::string(text)};
}

}  // namespace server::acl
