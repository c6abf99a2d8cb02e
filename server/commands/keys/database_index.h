// SPDX-License-Identifier: MIT
//
// Parses the database number of SELECT, COPY, MOVE and SWAPDB.
//
// Thread-safe: the function keeps no state.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/number.h"
#include "core/result.h"
#include "protocol/arguments.h"
#include "protocol/error_texts.h"

namespace server {

using protocol::kNotADatabase;
inline constexpr std::string_view kDatabaseIndexRange =
    "ERR value is out of range, value must between -2147483648 and 2147483647";

// Returns the error of a command that needs several databases. A server in cluster mode has only
// one.
inline std::string not_in_cluster(std::string_view command) {
  return "ERR " + std::string(command) + " is not allowed in cluster mode";
}

// Parses a database number. Errors: the text is not an integer of 32 bits; no such database exists,
// with the code kOutOfRange.
inline core::Result<unsigned> parse_database_index(std::string_view text, unsigned count) {
  const auto index = core::parse_int64(text);
  if (!index) return core::Error{std::string(protocol::kNotAnInteger)};
  if (*index < std::numeric_limits<int>::min() || *index > std::numeric_limits<int>::max()) {
    return core::Error{std::string(kDatabaseIndexRange)};
  }
  if (*index < 0 || *index >= int64_t{count}) {
    return core::Error{std::string(kNotADatabase), core::ErrorCode::kOutOfRange};
  }
  return static_cast<unsigned>(*index);
}

}  // namespace server
