// SPDX-License-Identifier: MIT
#include "server/admin/figures/reply_json.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>

#include "server/admin/figures/readable.h"

namespace server::admin {

boost::json::value to_json(const protocol::Reply& reply) {
  using Type = protocol::Reply::Type;
  switch (reply.type) {
    case Type::kInteger:
      return reply.integer;
    case Type::kBoolean:
      return reply.integer != 0;
    case Type::kDouble:
      if (!std::isfinite(reply.number)) return nullptr;
      return reply.number;
    case Type::kArray:
    case Type::kSet:
    case Type::kPush: {
      boost::json::array array;
      for (const protocol::Reply& element : reply.elements) array.push_back(to_json(element));
      return array;
    }
    case Type::kMap: {
      boost::json::object object;
      for (size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
        object[readable(reply.elements[i].text)] = to_json(reply.elements[i + 1]);
      }
      return object;
    }
    case Type::kNull:
    case Type::kAttribute:
      return nullptr;
    case Type::kSimple:
    case Type::kError:
    case Type::kBulk:
    case Type::kBigNumber:
    case Type::kBulkError:
    case Type::kVerbatim:
      return boost::json::string(readable(reply.text));
  }
  return nullptr;
}

}  // namespace server::admin
