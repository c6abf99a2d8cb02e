// SPDX-License-Identifier: MIT
//
// Locking: whether a function that reaches many keys locks their stripes itself.
#pragma once

#include <cstdint>

namespace core::keyspace {

// Whether a whole-keyspace function takes stripe locks itself or runs inside EXEC, where the
// caller holds all of them.
enum class Locking : uint8_t { kTake, kHeld };

}  // namespace core::keyspace
