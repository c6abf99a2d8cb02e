// SPDX-License-Identifier: MIT
//
// Returns the name of a value's type, for TYPE and SCAN TYPE.
//
// Thread safety: the caller must hold the lock of the entry's key.
// Source: "MBbloom--" is the name under which RedisBloom registers its filters.
#pragma once

#include <string_view>

#include "core/keyspace/entry.h"

namespace server {

inline std::string_view type_name(const core::keyspace::Entry& entry) {
  return entry.is_filter() ? "MBbloom--" : "string";
}

}  // namespace server
