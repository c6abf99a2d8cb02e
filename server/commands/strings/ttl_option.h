// SPDX-License-Identifier: MIT
//
// TtlOption: EX, PX, EXAT and PXAT of SET, GETEX and the commands that create filters.
//
// Thread safety: each object belongs to one thread. commit_set() requires the key's
// exclusive lock. The other functions change no shared state.
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
  kSeconds,         // EX states seconds from now
  kMilliseconds,    // PX states milliseconds from now
  kAtSeconds,       // EXAT states seconds since 1970
  kAtMilliseconds,  // PXAT states milliseconds since 1970
};

struct TtlOption {
  Ttl kind = Ttl::kNone;
  std::string_view amount;

  bool has_amount() const { return kind >= Ttl::kSeconds; }
};

// An option may be repeated, and its last amount counts. Returns false if two different options are
// given.
bool choose_ttl(TtlOption& option, Ttl kind);

// Parses EX, PX, EXAT or PXAT with its amount. Returns false if the next argument is none of them.
bool eat_ttl(protocol::ArgumentCursor& cursor, TtlOption& option);

// Returns the key's expiry for an option with an amount. Errors: the amount is not an integer or
// not positive, or the expiry in milliseconds exceeds 64 bits.
core::Result<int64_t> expiry_ms(const Context& ctx, const TtlOption& option);

// Commits a string that was stored with the option, and publishes the event of the expiry. Every
// kind of server supports SET, so the effect is a SET. REQUIRES: the key's exclusive lock.
inline void commit_set(Context& ctx, const KeyRef& key, std::string_view text,
                       const TtlOption& option, int64_t expires_at_ms) {
  if (option.kind == Ttl::kKeep) {
    return ctx.commit(key, KeyEvent::kSet, {"SET", key.name, text, "KEEPTTL"});
  }
  if (!option.has_amount()) return ctx.commit(key, KeyEvent::kSet, {"SET", key.name, text});
  ctx.commit(key, KeyEvent::kSet, {"SET", key.name, text, "PXAT", Decimal(expires_at_ms).text()});
  ctx.notify(KeyEvent::kExpire, ctx.database(), key);
}

}  // namespace server
