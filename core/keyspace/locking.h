// SPDX-License-Identifier: MIT
//
// Locking: states whether a function that accesses many keys locks their stripes itself.
//
// Thread safety: constants.
#pragma once

#include <cstdint>

namespace core::keyspace {

// kTake: the function takes stripe locks itself. kHeld: the function runs inside EXEC, where the
// caller holds all stripe locks.
enum class Locking : uint8_t { kTake, kHeld };

}  // namespace core::keyspace
