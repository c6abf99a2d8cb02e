// SPDX-License-Identifier: MIT
//
// CLIENT TRACKING, CACHING, TRACKINGINFO, GETREDIR: the handlers. Their rows are in
// client_commands.cpp.
//
// Thread safety: that of Context.
#pragma once

namespace server {

class Context;

void client_tracking(Context& ctx);
void client_caching(Context& ctx);
void client_trackinginfo(Context& ctx);
void client_getredir(Context& ctx);

}  // namespace server
