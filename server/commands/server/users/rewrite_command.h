// SPDX-License-Identifier: MIT
//
// CONFIG REWRITE: the options and the users in use go into the configuration file.
//
// Thread safety: a handler, on the thread of its session.
#pragma once

namespace server {

class Context;

void rewrite_config(Context& ctx);

}  // namespace server
