// SPDX-License-Identifier: MIT
//
// CONFIG REWRITE: writes the present options and users to the configuration file.
//
// Thread safety: a handler, on the thread of its session.
#pragma once

#include "server/config/config.h"

namespace server {

class Context;

void rewrite_config(Context& ctx);
// Writes the file. With Extent::kAll, options at their defaults get lines as well, as for DEBUG.
void rewrite_config(Context& ctx, Config::Extent extent);

}  // namespace server
