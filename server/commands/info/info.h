// SPDX-License-Identifier: MIT
//
// Returns the text of INFO: sections of `field:value` lines, which are selected by name from a
// table.
//
// Invariants: sections come in table order, each at most once, whatever the order and number of
// names.
// Thread safety: any thread may call the functions. The values are read one after another and are
// not a consistent snapshot.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/keyspace/locking.h"
#include "server/commands/services.h"

namespace server::info {

struct Source {
  Services& services;
  int64_t now_ms;
  core::keyspace::Locking locking;
};

// Returns the text. `names` are titles of sections, or the other words in the table of
// info.cpp, such as `all`. They are case-insensitive. No names select the default sections. Unknown
// names are ignored.
std::string text_of(const Source& source, std::span<const std::string_view> names);

}  // namespace server::info
