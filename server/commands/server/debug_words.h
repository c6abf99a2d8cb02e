// SPDX-License-Identifier: MIT
//
// The words of DEBUG that look at keys, replies and settings. Those that load data anew stand with
// the table, in debug_commands.cpp.
//
// Thread safety: as handlers.
#pragma once

namespace server {

class Context;

// Whether enable-debug-command lets the client use DEBUG; answers when it does not.
bool is_debug_allowed(Context& ctx);

void debug_digest(Context& ctx);
void debug_digest_value(Context& ctx);
void debug_error(Context& ctx);
void debug_log(Context& ctx);
void debug_protocol(Context& ctx);
void debug_set_active_expire(Context& ctx);
void debug_pause_cron(Context& ctx);
void debug_help(Context& ctx);
void debug_rewrite_config(Context& ctx);
void debug_stringmatch(Context& ctx);
void debug_replybuffer(Context& ctx);
void debug_object(Context& ctx);
void debug_populate(Context& ctx);
void debug_change_replication_id(Context& ctx);

}  // namespace server
