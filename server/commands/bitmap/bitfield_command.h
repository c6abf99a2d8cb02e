// SPDX-License-Identifier: MIT
//
// Declares the handlers of BITFIELD and BITFIELD_RO, and their use of the key, for the rows in
// bitmap_commands.cpp.
//
// Thread safety: the thread that runs the command calls the functions.
#pragma once

#include "server/dispatch/command.h"

namespace server {

void bitfield(Context& ctx);
void bitfield_ro(Context& ctx);

// Returns that the key is only read if every subcommand is GET.
uint16_t bitfield_key_use(Arguments args);

}  // namespace server
