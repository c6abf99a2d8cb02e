// SPDX-License-Identifier: MIT
//
// Error texts of Redis that commands of several families reply. A text of one family is defined in
// the header of that family. Tests use the same definitions.
//
// Thread safety: constants and pure functions.
// Source: error texts of Redis 7.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace protocol {

// Returns the code of an error text or of an error reply without its '-': "WRONGTYPE" of "WRONGTYPE
// Operation…".
constexpr std::string_view error_code(std::string_view error) {
  return error.substr(0, error.find_first_of(" \r"));
}
// The code of errors that report a lack of memory.
inline constexpr std::string_view kOutOfMemoryCode = "OOM";

inline constexpr std::string_view kSyntaxError = "ERR syntax error";
inline constexpr std::string_view kNotAnInteger = "ERR value is not an integer or out of range";
inline constexpr std::string_view kNotAFloat = "ERR value is not a valid float";
inline constexpr std::string_view kNotPositive = "ERR value is out of range, must be positive";
inline constexpr std::string_view kTimeoutNotAnInteger =
    "ERR timeout is not an integer or out of range";
inline constexpr std::string_view kNotADatabase = "ERR DB index is out of range";
inline constexpr std::string_view kNegativeTimeout = "ERR timeout is negative";
// The beginning of the text that unknown_command() returns.
inline constexpr std::string_view kUnknownCommand = "ERR unknown command";

// `arguments` holds the quoted arguments, each followed by a space.
inline std::string unknown_command(std::string_view name, std::string_view arguments) {
  return fmt::format("{} '{}', with args beginning with: {}", kUnknownCommand, name, arguments);
}

// `container` is the name of the command in upper case.
inline std::string unknown_subcommand(std::string_view name, std::string_view container) {
  return fmt::format("ERR unknown subcommand '{}'. Try {} HELP.", name, container);
}

// The error of a subcommand that checks its number of arguments itself.
inline std::string wrong_subcommand(std::string_view name, std::string_view container) {
  return fmt::format("ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
                     name, container);
}

inline std::string protocol_error(std::string_view reason) {
  return std::string("ERR Protocol error: ").append(reason);
}

// `command` is the full name, as in "client|kill".
inline std::string wrong_arity(std::string_view command) {
  return std::string("ERR wrong number of arguments for '").append(command).append("' command");
}

inline std::string invalid_expiry(std::string_view command) {
  return std::string("ERR invalid expire time in '").append(command).append("' command");
}

}  // namespace protocol
