// SPDX-License-Identifier: MIT
//
// CONFIG REWRITE: the options and the users in use go into the configuration file.
//
// Thread safety: a handler, on the thread of its session.
#pragma once

#include "server/config/config.h"

namespace server {

class Context;

void rewrite_config(Context& ctx);
// With lines for more options, as DEBUG asks for them.
void rewrite_config(Context& ctx, Config::Extent extent);

}  // namespace server
