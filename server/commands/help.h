// SPDX-License-Identifier: MIT
//
// The HELP subcommand that every container command gets, written from the rows beside it.
//
// Thread safety: a constant.
#pragma once

#include "server/commands/command.h"

namespace server {

extern const Command kHelpRow;

}  // namespace server
