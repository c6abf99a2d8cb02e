// SPDX-License-Identifier: MIT
//
// ReplayedError: an error that a journal's or a leader's command was answered with, and whether
// data are missing because of it.
//
// A journal of ours, and the stream of a leader that is a Bloomery, hold effects: whatever fails
// there is missing. Other servers also write down commands that failed for them as well, such as an
// addition to a full filter; of their errors two tell that the data now differ: memory that the
// system did not give, and a database that is not there, for the commands behind it mean its keys.
//
// Thread safety: values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "protocol/reply.h"
#include "server/session/session.h"

namespace server {

struct ReplayedError {
  std::string text;  // without '-'
  bool loses_data = false;
};

// Nothing when the command did not fail. In effects an array's elements are looked at, too.
std::optional<ReplayedError> find_error(CommandOrigin origin, std::string_view name,
                                        std::string_view reply);
// As above, for an element of EXEC's reply.
std::optional<ReplayedError> find_error(CommandOrigin origin, std::string_view name,
                                        const protocol::Reply& reply);

// Reads the reply to a replayed command, of whatever size; nothing when it is none.
std::optional<protocol::Reply> read_reply(std::string_view bytes);

}  // namespace server
