// SPDX-License-Identifier: MIT
//
// TtlOption: EX, PX, EXAT and PXAT, which SET, GETEX and the commands that make filters take.
//
// Thread safety: values; the functions read the context's clock alone.
// Source: https://redis.io/docs/latest/commands/set
#pragma once

#include <cstdint>
#include <string_view>

#include "core/result.h"
#include "protocol/arguments.h"
#include "server/dispatch/context.h"

namespace server {

enum class Ttl : uint8_t {
  kNone,
  kKeep,
  kPersist,
  kSeconds,         // EX
  kMilliseconds,    // PX
  kAtSeconds,       // EXAT
  kAtMilliseconds,  // PXAT
};

struct TtlOption {
  Ttl kind = Ttl::kNone;
  std::string_view amount;

  bool has_amount() const { return kind >= Ttl::kSeconds; }
};

// One kind may be repeated, and its last amount counts; false when two kinds contradict each other.
bool choose_ttl(TtlOption& option, Ttl kind);

// Takes EX, PX, EXAT or PXAT with its amount; false when the next word is none of them.
bool eat_ttl(protocol::ArgumentCursor& cursor, TtlOption& option);

// When the key shall expire, for an option with an amount. Errors: no integer, not positive, beyond
// 64 bits of milliseconds.
core::Result<int64_t> expiry_ms(const Context& ctx, const TtlOption& option);

}  // namespace server
