// SPDX-License-Identifier: MIT
//
// Bytes of a key made fit for JSON, for a label of a metric and for a person.
//
// Invariants: the result is valid UTF-8 without control characters.
// Thread safety: a pure function.
// Source: RFC 3629.
#pragma once

#include <string>
#include <string_view>

namespace server::admin {

// Bytes that are no UTF-8, and control characters, become \xHH; so two keys may look alike.
std::string readable(std::string_view bytes);

}  // namespace server::admin
