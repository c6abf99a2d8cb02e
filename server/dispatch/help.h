// SPDX-License-Identifier: MIT
//
// The HELP subcommand that every container command gets, written from the rows beside it.
//
// Thread safety: a free function without state.
#pragma once

#include "server/dispatch/command.h"

namespace server {

class Context;

// The row for one container: it belongs to the categories that all of its siblings belong to.
Command help_row(const Command& container);
// Its handler, for a container that has a row of its own for HELP.
void container_help(Context& ctx);

}  // namespace server
