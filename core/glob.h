// SPDX-License-Identifier: MIT
//
// Redis' glob patterns, as KEYS, SCAN MATCH, PSUBSCRIBE and ACL rules use them: '*', '?',
// "[abc]", "[a-z]", "[^x]" and '\' before a character that is meant literally.
//
// Invariants: constant memory and no recursion. Time is at most pattern size times text size, for
// any number of stars.
// Thread safety: pure functions.
// Source: odd cases measured on Redis 7.0.15.
#pragma once

#include <cstdint>
#include <string_view>

namespace core {

enum class LetterCase : uint8_t { kExact, kIgnored };

// True when the pattern describes the whole text. As in Redis an empty text matches only an empty
// pattern, not even "*": commands for which "*" means everything look for it themselves.
bool glob_matches(std::string_view pattern, std::string_view text,
                  LetterCase letter_case = LetterCase::kExact);

}  // namespace core
