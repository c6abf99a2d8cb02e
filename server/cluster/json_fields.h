// SPDX-License-Identifier: MIT
//
// Reads the members of JSON objects by name and type, with one text for each kind of fault.
//
// Invariants: a null value counts as a missing member. Faults are thrown as JsonFault, so that
// functions that read nested values need not return errors. parse_json() catches them.
// Thread safety: pure functions.
// Source: RFC 8259.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

namespace server::cluster {

// JsonFault: exception for a text that is not JSON, and for a member that is missing or wrong.
struct JsonFault {
  std::string text;
};

// Throws a JsonFault whose text says that the member is not of the wanted kind, such as "number".
[[noreturn]] void refuse_json(std::string_view name, std::string_view wanted);

// JsonField: a member of an object, which may be missing. The functions that return the value throw
// JsonFault if it has another type. They also throw if the member is missing, unless their names
// end in `_or`.
class JsonField {
 public:
  static constexpr auto kNumberMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

  // The object and the name must outlive the field.
  JsonField(const boost::json::object& object, std::string_view name);
  // A value that is not a member of an object, such as an element of an array. `name` is the name
  // of the value in the text of a JsonFault.
  JsonField(const boost::json::value& value, std::string_view name) : name_(name), value_(&value) {}

  bool exists() const { return value_ != nullptr; }
  const boost::json::value& value() const;
  const boost::json::object& object() const;
  const boost::json::array& array() const;
  std::string text() const;
  std::string text_or(std::string_view absent) const;
  std::vector<std::string> texts() const;
  uint64_t number(uint64_t most = kNumberMax) const;
  uint64_t number_or(uint64_t absent, uint64_t most = kNumberMax) const;
  bool flag_or(bool absent) const;

 private:
  std::string_view name_;
  const boost::json::value* value_;  // null if the member is missing
};

// Parses the text of a JSON object. Throws JsonFault.
boost::json::object parse_json_object(std::string_view text, size_t bytes_max);

// Parses a JSON object of at most `bytes_max` bytes, and returns what `read` makes of the object.
// Errors: "ERR", the name of the document, and the text of the JsonFault that the parser or `read`
// has thrown.
template <class Read>
auto parse_json(std::string_view document, std::string_view text, size_t bytes_max, Read read)
    -> core::Result<decltype(read(std::declval<const boost::json::object&>()))> {
  try {
    return {boost::system::in_place_value, read(parse_json_object(text, bytes_max))};
  } catch (const JsonFault& fault) {
    return core::Error{"ERR " + std::string(document) + ": " + fault.text};
  }
}

}  // namespace server::cluster
