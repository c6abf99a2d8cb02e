// SPDX-License-Identifier: MIT
//
// readable: escapes the bytes of a key, for JSON, for metric labels and for people.
//
// Invariants: the result is valid UTF-8 without control characters; different bytes give different
// results.
// Thread safety: a pure function.
// Source: RFC 3629.
#pragma once

#include <string>
#include <string_view>

namespace server::admin {

// Writes bytes that are not UTF-8, and control characters, as \xHH. Also escapes a backslash that
// looks like the start of such an escape.
std::string readable(std::string_view bytes);

}  // namespace server::admin
