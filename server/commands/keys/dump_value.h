// SPDX-License-Identifier: MIT
//
// The value of a key as DUMP gives it and RESTORE takes it.
//
// Thread safety: dump_of() needs the key's lock; restored_entry() none, for nobody knows the entry.
// Source: docs/formats.md, "DUMP payloads".
#pragma once

#include <string>
#include <string_view>

#include "core/keyspace/entry.h"
#include "core/result.h"

namespace server {

class Admission;

// Type byte, value and footer.
std::string dump_of(const core::keyspace::Entry& entry);

// A new entry of that name. Errors: the reply; the payload is damaged, or more than may be taken.
core::Result<core::keyspace::EntryPtr> restored_entry(const Admission& admission,
                                                      std::string_view name,
                                                      std::string_view payload);

}  // namespace server
