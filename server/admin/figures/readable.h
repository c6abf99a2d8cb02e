// SPDX-License-Identifier: MIT
//
// readable: escapes the bytes of a key, for JSON, for metric labels and for people.
//
// Invariants: the result is valid UTF-8. It has no characters that change the layout of a text:
// control characters, line separators, and the characters for text from right to left. Different
// bytes give different results.
// Thread safety: a pure function.
// Source: RFC 3629; Unicode Standard Annex 9, "Directional Formatting Characters".
#pragma once

#include <string>
#include <string_view>

namespace server::admin {

// Writes bytes that are not UTF-8, and characters that change the layout, as \xHH. Also escapes a
// backslash that looks like the start of such an escape.
std::string readable(std::string_view bytes);

}  // namespace server::admin
