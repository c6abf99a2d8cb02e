// SPDX-License-Identifier: MIT
#include "server/commands/strings/ttl_option.h"

#include <string>

#include "core/number.h"

namespace server {
namespace {

struct TtlWord {
  std::string_view word;
  Ttl kind;
};
constexpr TtlWord kTtlWords[] = {
    {"EX", Ttl::kSeconds},
    {"PX", Ttl::kMilliseconds},
    {"EXAT", Ttl::kAtSeconds},
    {"PXAT", Ttl::kAtMilliseconds},
};

}  // namespace

bool choose_ttl(TtlOption& option, Ttl kind) {
  if (option.kind != Ttl::kNone && option.kind != kind) return false;
  option.kind = kind;
  return true;
}

bool eat_ttl(protocol::ArgumentCursor& cursor, TtlOption& option) {
  for (const TtlWord& entry : kTtlWords) {
    if (!cursor.eat_keyword(entry.word)) continue;
    if (!choose_ttl(option, entry.kind)) cursor.fail(kSyntaxError);
    option.amount = cursor.next();
    return true;
  }
  return false;
}

core::Result<int64_t> expiry_ms(const Context& ctx, const TtlOption& option) {
  const auto amount = core::parse_int64(option.amount);
  if (!amount) return core::Error{std::string(kNotAnInteger)};
  const bool seconds = option.kind == Ttl::kSeconds || option.kind == Ttl::kAtSeconds;
  const bool relative = option.kind == Ttl::kSeconds || option.kind == Ttl::kMilliseconds;
  int64_t at_ms = *amount;
  if (*amount <= 0 || (seconds && __builtin_mul_overflow(at_ms, int64_t{1000}, &at_ms)) ||
      (relative && __builtin_add_overflow(at_ms, ctx.now_ms, &at_ms))) {
    return core::Error{protocol::invalid_expiry(ctx.command->full_name)};
  }
  return at_ms;
}

}  // namespace server
