// SPDX-License-Identifier: MIT
//
// printable: makes text from outside safe for one line of the log, of INFO or of a file.
//
// Invariants: the result contains no ASCII control character, so no line feed and no carriage
// return.
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace core {

// ASCII control characters become \n, \r, \t, \b, \a or \xHH. Bytes above 0x7f are kept: paths may
// be UTF-8. A backslash is also kept, so the result is not reversible.
std::string printable(std::string_view text);
void append_printable(std::string& out, char c);

}  // namespace core
