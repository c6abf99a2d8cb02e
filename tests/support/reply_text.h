// SPDX-License-Identifier: MIT
//
// reply_text: a reply as one line of text, to keep expectations short.
//
//   +OK   -ERR text   :1   text   nil   [a, b]   {key: value}   <a, b>   >[push, of, these]
//
// Thread safety: may be called from any thread.
#pragma once

#include <string>

#include "protocol/reply.h"

inline std::string reply_text(const protocol::Reply& reply) {
  using Type = protocol::Reply::Type;
  const auto joined = [&reply](const char* begin, const char* end) {
    const bool is_map = reply.type == Type::kMap;
    std::string text = begin;
    for (size_t i = 0; i < reply.elements.size(); ++i) {
      if (i > 0) text += is_map && i % 2 == 1 ? ": " : ", ";
      text += reply_text(reply.elements[i]);
    }
    return text + end;
  };
  switch (reply.type) {
    case Type::kNull:
      return "nil";
    case Type::kSimple:
      return "+" + reply.text;
    case Type::kError:
    case Type::kBulkError:
      return "-" + reply.text;
    case Type::kInteger:
      return ":" + std::to_string(reply.integer);
    case Type::kBoolean:
      return reply.integer != 0 ? "true" : "false";
    case Type::kArray:
      return joined("[", "]");
    case Type::kMap:
      return joined("{", "}");
    case Type::kSet:
      return joined("<", ">");
    case Type::kPush:
      return joined(">[", "]");
    default:
      return reply.text;
  }
}
