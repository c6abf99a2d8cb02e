// SPDX-License-Identifier: MIT
//
// The check whether a client may use DEBUG and the options for tests.
//
// Thread safety: the thread that runs the command calls the function.
#pragma once

namespace server {

class Context;

// Returns whether enable-debug-command lets the client use DEBUG. If not, replies with an error.
bool is_debug_allowed(Context& ctx);

}  // namespace server
