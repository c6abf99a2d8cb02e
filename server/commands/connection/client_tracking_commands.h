// SPDX-License-Identifier: MIT
//
// Declares the handlers of CLIENT TRACKING, CACHING, TRACKINGINFO and GETREDIR. Their rows are in
// client_commands.cpp.
//
// Thread safety: the thread that runs the command calls the functions.
#pragma once

#include <string>
#include <string_view>

namespace server {

// Returns the error for two prefixes that overlap. `kind` describes `other`: "an existing" or
// "another provided".
std::string overlap_error(std::string_view prefix, std::string_view kind, std::string_view other);

class Context;

void client_tracking(Context& ctx);
void client_caching(Context& ctx);
void client_trackinginfo(Context& ctx);
void client_getredir(Context& ctx);

}  // namespace server
