// SPDX-License-Identifier: MIT
//
// Bytes of a key made fit for JSON, for a label of a metric and for a person.
//
// Invariants: the result is valid UTF-8 without control characters; different bytes give different
// results.
// Thread safety: a pure function.
// Source: RFC 3629.
#pragma once

#include <string>
#include <string_view>

namespace server::admin {

// Bytes that are no UTF-8, and control characters, become \xHH, and so does a backslash that could
// be taken for the beginning of one.
std::string readable(std::string_view bytes);

}  // namespace server::admin
