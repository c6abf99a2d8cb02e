// SPDX-License-Identifier: MIT
//
// Text from outside, made fit for a line of the log, of INFO or of a file.
//
// Invariants: the result holds no line end and no other control character.
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace core {

// Control characters become \n, \r, \t, \b, \a or \xHH. Bytes above 0x7f stay: paths may be UTF-8.
// A backslash stays as well, so the text cannot be read back.
std::string printable(std::string_view text);
void append_printable(std::string& out, char c);

}  // namespace core
