// SPDX-License-Identifier: MIT
//
// Digests of values and of the whole keyspace, to compare servers.
//
// Invariants: equal data give equal digests, whatever the order, seed or layout of the tables.
// Thread safety: reads entries; the caller holds their stripes.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/keyspace/keyspace.h"

namespace server {

using Digest = std::array<uint8_t, 20>;

// Of the value alone, as DEBUG DIGEST-VALUE tells it.
Digest value_digest(const core::keyspace::Entry& entry);
// Of every key with its database, name, value and expiry. REQUIRES: all stripes.
Digest keyspace_digest(const core::keyspace::Keyspace& keyspace);
// 40 hexadecimal digits.
std::string to_text(const Digest& digest);

}  // namespace server
