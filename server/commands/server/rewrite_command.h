// SPDX-License-Identifier: MIT
//
// CONFIG REWRITE: writes the present options and users to the configuration file.
//
// Thread safety: the thread that runs the command calls the functions.
#pragma once

#include "server/base/config/config.h"

namespace server {

class Context;

// Writes the configuration file. With Extent::kAll, as DEBUG CONFIG-REWRITE-FORCE-ALL requires,
// options at their defaults get lines as well.
void rewrite_config(Context& ctx, Config::Extent extent);

}  // namespace server
