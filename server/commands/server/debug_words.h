// SPDX-License-Identifier: MIT
//
// Declares the subcommands of DEBUG about keys, replies and settings. The subcommands that reload
// data are in debug_commands.cpp, together with the table.
//
// Thread safety: the thread that runs the command calls the handlers.
#pragma once

namespace server {

class Context;

// Returns whether enable-debug-command lets the client use DEBUG. If not, replies with an error.
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
