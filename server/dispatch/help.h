// SPDX-License-Identifier: MIT
//
// Generates the HELP subcommand of every container command from the rows of its subcommands.
//
// Thread-safe: the functions keep no state.
#pragma once

#include "server/dispatch/command.h"

namespace server {

class Context;

// Returns the HELP row for a container. The row's categories are those that all other subcommands
// share.
Command help_row(const Command& container);
// Handles the HELP subcommand of a container that has a HELP row of its own.
void container_help(Context& ctx);

}  // namespace server
