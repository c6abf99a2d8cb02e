// SPDX-License-Identifier: MIT
//
// ArgumentCursor reads a command's arguments in order. The caller parses all arguments, the cursor
// stores the first error, and the caller checks for an error once at the end.
//
//   ArgumentCursor cursor(arguments.subspan(1));
//   const auto key = cursor.next();
//   while (!cursor.done()) {
//     if (cursor.eat_keyword("EX")) ttl_s = cursor.take_int64();
//     else if (cursor.eat_keyword("NX")) only_if_missing = true;
//     else cursor.fail(kSyntaxError);
//   }
//   if (!cursor.ok()) return reply.error(cursor.error());
//
// Invariants: after the first error done() is true, so loops end, and all reads return empty
// values. Later errors do not replace the first.
// Thread safety: one thread at a time may use an object. The cursor holds views of the arguments
// and error texts, which must outlive the cursor.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "core/number.h"
#include "protocol/error_texts.h"

namespace protocol {

// Ignores the case of ASCII letters only, in every locale, because keywords are ASCII.
inline bool equals_ignore_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

inline std::string upper_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  }
  return result;
}

class ArgumentCursor {
 public:
  explicit ArgumentCursor(std::span<const std::string_view> arguments) : rest_(arguments) {}

  bool done() const { return rest_.empty(); }
  size_t remaining() const { return rest_.size(); }
  std::span<const std::string_view> rest() const { return rest_; }

  // Returns the next argument without consuming it; empty at the end.
  std::string_view peek() const { return done() ? std::string_view{} : rest_.front(); }

  // Returns the next argument. Errors: syntax error if no argument is left.
  std::string_view next() {
    if (done()) {
      fail(kSyntaxError);
      return {};
    }
    const std::string_view argument = rest_.front();
    rest_ = rest_.subspan(1);
    return argument;
  }

  // Consumes the next argument if it equals `keyword`, ignoring the case of letters.
  bool eat_keyword(std::string_view keyword) {
    if (done() || !equals_ignore_case(rest_.front(), keyword)) return false;
    rest_ = rest_.subspan(1);
    return true;
  }

  // Returns the next argument as an integer. Errors: syntax error if no argument is left, `error`
  // if it is not an integer.
  int64_t take_int64(std::string_view error = kNotAnInteger) {
    return value_or_fail(core::parse_int64(next()), error);
  }

  // Does the same as take_int64(), but also gives `error` for an integer outside [min, max].
  int64_t take_int64_between(int64_t min, int64_t max, std::string_view error = kNotAnInteger) {
    const int64_t value = take_int64(error);
    if (ok() && (value < min || value > max)) {
      fail(error);
      return 0;
    }
    return value;
  }

  double take_double(std::string_view error = kNotAFloat) {
    return value_or_fail(core::parse_double(next()), error);
  }

  // Checks that no argument is left. Errors: syntax error if an argument is left.
  void expect_end() {
    if (!done()) fail(kSyntaxError);
  }

  // Stores `error` unless an earlier error is stored. REQUIRES: `error` is not empty.
  void fail(std::string_view error) {
    if (ok()) error_ = error;
    rest_ = rest_.last(0);
  }

  bool ok() const { return error_.empty(); }
  std::string_view error() const { return error_; }

 private:
  template <class T>
  T value_or_fail(const std::optional<T>& value, std::string_view error) {
    if (value && ok()) return *value;
    fail(error);
    return T{};
  }

  std::span<const std::string_view> rest_;
  std::string_view error_;
};

}  // namespace protocol
