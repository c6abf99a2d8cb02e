// SPDX-License-Identifier: MIT
//
// Result<T>: a value, or an error that a client or a file caused.
//
// Invariants: an Error's message is the whole reply line without its leading '-'. So it begins with
// the reply code if Redis has one ("ERR not found", "WRONGTYPE Operation…").
// Thread safety: concurrent reads of a Result are safe; two results share no state.
// Source: Boost.System result (https://www.boost.org/doc/libs/1_81_0/libs/system/).
#pragma once

#include <boost/system/result.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace core {

// The reasons of an error that callers distinguish. A caller compares the code, never the message.
enum class ErrorCode : uint8_t {
  kOther,        // no caller distinguishes the reason
  kOutOfMemory,  // memory is short, or a limit on memory is reached
  kOutOfRange,   // a number is outside its range, such as the number of a database
  kDamaged,      // the input cannot be read, or its bytes do not have the expected form
  kUnsupported,  // the input is sound, but this server has no such values
  kMisrouted,    // this server does not serve the keys of the command
  kReadOnly,     // this server is a replica, which rejects writes of clients
};

struct Error {
  std::string message;
  ErrorCode code = ErrorCode::kOther;
};

// Returns an error's message without the reply code ERR or OOM, which means nothing in a log line.
inline std::string_view without_code(std::string_view message) {
  for (const std::string_view code : {"ERR ", "OOM "}) {
    if (message.starts_with(code)) return message.substr(code.size());
  }
  return message;
}

template <class T = void>
using Result = boost::system::result<T, Error>;

template <class T>
Result<> without_value(const Result<T>& result) {
  if (!result) return result.error();
  return {};
}

// Throws std::logic_error. Called when value() is called on a failed Result, which is a programming
// error.
[[noreturn]] inline void throw_exception_from_error(const Error& error,
                                                    const boost::source_location&) {
  throw std::logic_error("unchecked error: " + error.message);
}

}  // namespace core
