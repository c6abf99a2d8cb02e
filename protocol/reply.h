// SPDX-License-Identifier: MIT
//
// Reply: one parsed reply of a server, as a tree.
//
// Invariants: `text` contains strings, errors, big numbers and doubles exactly as they were sent.
// The elements of a map are key, value, key, value…
// Thread safety: concurrent reads of a value are safe.
// Source: RESP3 (https://github.com/redis/redis-specifications/blob/master/protocol/RESP3.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace protocol {

struct Reply {
  enum class Type : uint8_t {
    kNull,  // null: "_" in RESP3, "$-1" or "*-1" in RESP2
    kSimple,
    kError,
    kInteger,
    kBulk,
    kArray,
    kBoolean,
    kDouble,
    kBigNumber,
    kBulkError,
    kVerbatim,
    kMap,
    kSet,
    kPush,
    kAttribute,  // used while parsing; a finished attribute is moved to the reply that it describes
  };

  bool is_error() const { return type == Type::kError || type == Type::kBulkError; }

  Type type = Type::kNull;
  int64_t integer = 0;  // value of integers and booleans
  double number = 0;
  std::string text;
  std::string format;  // format of verbatim strings: "txt", "mkd"
  std::vector<Reply> elements;
  std::vector<Reply> attributes;  // the keys and values of attributes: key, value, key, value…
};

}  // namespace protocol
