// SPDX-License-Identifier: MIT
//
// Defines the error texts that several kinds of access rules share.
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
