// SPDX-License-Identifier: MIT
//
// ReplayedError: the error reply to a command from a journal or a leader. It states whether the
// failure leaves data missing, and whether this server knows the command.
//
// The journal of this server, and the stream of a Bloomery leader, contain only effects of
// successful commands. So if one of these commands fails at replay, its effect is missing. Other
// servers also write commands that failed on those servers, such as an addition to a full filter.
// If such a command fails at replay, only two errors show that the data now differ. One error is a
// failed allocation. The other is a missing database, because the commands that follow change keys
// of that database.
//
// Thread safety: pure functions, which may be called from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "protocol/reply.h"
#include "server/session/session.h"

namespace server {

struct ReplayedError {
  std::string text;  // text of the error without the leading '-'
  bool loses_data = false;
  bool is_unknown_command = false;
  bool is_missing_database = false;  // the option `databases` is too small for the command
};

// Returns the error in the reply; nullopt if the command did not fail. If `origin` is kOwnJournal,
// also searches the elements of an array for an error.
std::optional<ReplayedError> find_error(CommandOrigin origin, std::string_view name,
                                        std::string_view reply);
// Returns the error in a parsed reply, such as an element of EXEC's reply.
std::optional<ReplayedError> find_error(CommandOrigin origin, std::string_view name,
                                        const protocol::Reply& reply);

// Parses the reply to a replayed command; its size is not limited. Returns nullopt if the bytes are
// not a whole RESP reply.
std::optional<protocol::Reply> read_reply(std::string_view bytes);

}  // namespace server
