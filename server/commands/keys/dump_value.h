// SPDX-License-Identifier: MIT
//
// Encodes a key's value for DUMP and decodes it for RESTORE.
//
// Thread safety: dump_of() needs the key's lock. restored_entry() needs none, because the new entry
// is not yet shared.
// Source: docs/formats.md, "DUMP payloads".
#pragma once

#include <string>
#include <string_view>

#include "core/keyspace/entry.h"
#include "core/result.h"

namespace server {

class Admission;

inline constexpr std::string_view kWrongFooter = "ERR DUMP payload version or checksum are wrong";
inline constexpr std::string_view kBadFormat = "ERR Bad data format";

// Returns the payload of DUMP: the type byte, the value and the footer.
std::string dump_of(const core::keyspace::Entry& entry);

// Returns a new entry with the name and the decoded value. Errors: the error reply, if the payload
// is damaged or too big.
core::Result<core::keyspace::EntryPtr> restored_entry(const Admission& admission,
                                                      std::string_view name,
                                                      std::string_view payload);

}  // namespace server
