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
// `extent` may ask for lines for more options, as DEBUG does.
void rewrite_config(Context& ctx, Config::Extent extent);

}  // namespace server
