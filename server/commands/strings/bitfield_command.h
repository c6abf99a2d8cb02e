// SPDX-License-Identifier: MIT
//
// Declares the handlers of BITFIELD and BITFIELD_RO, and a function that returns BITFIELD's key
// flags, for the table of commands in bitmap_commands.cpp.
//
// Thread safety: the thread that runs the command calls the functions.
#pragma once

#include <string_view>

#include "server/dispatch/command.h"

namespace server {

inline constexpr std::string_view kInvalidOverflow = "ERR Invalid OVERFLOW type specified";
inline constexpr std::string_view kReadsOnly = "ERR BITFIELD_RO only supports the GET subcommand";

void bitfield(Context& ctx);
void bitfield_ro(Context& ctx);

// Returns the flags of a read-only key if every subcommand is GET; otherwise the flags of a write.
uint16_t bitfield_key_use(Arguments args);

}  // namespace server
