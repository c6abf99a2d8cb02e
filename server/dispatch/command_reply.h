// SPDX-License-Identifier: MIT
//
// Writes the replies of COMMAND INFO and COMMAND DOCS about one command from its row.
//
// Thread safety: any thread may call the functions. They share only constants; each call writes to
// the caller's reply.
// Source: https://redis.io/docs/latest/commands/command/ and command-docs/.
// The replies have the same structure as those of Redis 7.0.
#pragma once

#include <string_view>
#include <vector>

#include "protocol/reply_writer.h"
#include "server/dispatch/registry.h"

namespace server {

// Writes the ten elements of COMMAND INFO, including subcommands.
void write_command_info(const RegisteredCommand& command, protocol::ReplyWriter& reply);
// Writes the name and the map of COMMAND DOCS, including subcommands.
void write_command_docs(const RegisteredCommand& command, protocol::ReplyWriter& reply);

// Returns the categories that the row states or that its flags imply, such as "@read" and "@fast".
std::vector<std::string_view> category_names(const Command& row);
// Returns whether the command has the category. `category` is a name without the @, in upper or
// lower case.
bool has_category(const Command& row, std::string_view category);
// Returns the names of all categories without the @, in the order of ACL CAT.
std::vector<std::string_view> all_categories();
// Returns the names of KeyUse bits, such as "RO" and "access".
std::vector<std::string_view> key_use_names(uint16_t use);
// Returns whether the command belongs to the module that clients know as `bf`.
bool is_module_command(const Command& row);

}  // namespace server
