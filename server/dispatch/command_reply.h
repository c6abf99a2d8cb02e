// SPDX-License-Identifier: MIT
//
// Writes the replies of COMMAND INFO and COMMAND DOCS about one command from its row.
//
// Thread safety: pure functions of constants and of the reply they write to.
// Source: https://redis.io/docs/latest/commands/command/ and command-docs/; shapes as Redis 7.0.
#pragma once

#include <string_view>
#include <vector>

#include "protocol/reply_writer.h"
#include "server/dispatch/registry.h"

namespace server {

// The ten elements of COMMAND INFO, subcommands included.
void write_command_info(const RegisteredCommand& command, protocol::ReplyWriter& reply);
// The name and the map of COMMAND DOCS, subcommands included.
void write_command_docs(const RegisteredCommand& command, protocol::ReplyWriter& reply);

// "@read", "@fast"…: given in the row, or implied by its flags.
std::vector<std::string_view> category_names(const Command& row);
// Whether the category, spelled without its @ and in any case, is one of these.
bool has_category(const Command& row, std::string_view category);
// The names of all categories without their @, in the order of ACL CAT.
std::vector<std::string_view> all_categories();
// "RO", "access"…: of KeyUse bits.
std::vector<std::string_view> key_use_names(uint16_t use);
// The commands of the module that clients know as `bf`.
bool is_module_command(const Command& row);

}  // namespace server
