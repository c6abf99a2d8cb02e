// SPDX-License-Identifier: MIT
//
// Computes digests of values and of the whole keyspace, for comparing servers.
//
// Invariants: equal data give equal digests, whatever the order, seed or layout of the tables.
// Thread safety: the caller must hold the locks of the stripes whose entries are read.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/keyspace/keyspace.h"

namespace server {

using Digest = std::array<uint8_t, 20>;

// Returns the digest of the value alone, for DEBUG DIGEST-VALUE.
Digest value_digest(const core::keyspace::Entry& entry);
// Returns the digest of all keys with their databases, names, values and expiries. REQUIRES: the
// locks of all stripes.
Digest keyspace_digest(const core::keyspace::Keyspace& keyspace);
// Returns the digest as 40 hexadecimal digits.
std::string to_text(const Digest& digest);

}  // namespace server
