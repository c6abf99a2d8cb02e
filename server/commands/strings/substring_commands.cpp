// SPDX-License-Identifier: MIT
//
// The commands on parts of strings: APPEND, STRLEN, GETRANGE, SETRANGE and SUBSTR.
#include <algorithm>
#include <cstring>
#include <utility>

#include "server/commands/families.h"
#include "server/commands/strings/new_value.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

using core::keyspace::ByteBuffer;
using core::keyspace::IntegerText;

// Returns whether a string of `size` plus `added` bytes is allowed.
bool is_allowed_size(const Context& ctx, uint64_t size, uint64_t added) {
  uint64_t total = 0;
  if (__builtin_add_overflow(size, added, &total)) return false;
  return ctx.admission().allows_string(total);
}

// APPEND to a missing key stores the value with the encoding that SET would choose.
void append_to_nothing(Context& ctx, const KeyRef& key, std::string_view text) {
  NewValue value(text);
  const bool is_stored = value.take_or_prepare(ctx) && value.store(ctx, key, nullptr) != nullptr;
  if (!is_stored) return ctx.reply.error(ctx.admission().memory_refusal());
  ctx.commit(key, KeyEvent::kAppend);
  ctx.reply.integer(static_cast<int64_t>(text.size()));
}

/* APPEND key value */
void append(Context& ctx) {
  const KeyRef key = ctx.key(1);
  const std::string_view text = ctx.args[2];
  const auto lock = ctx.lock(key);
  const auto found = ctx.find_string(key);
  if (!found) return;
  Entry* const entry = *found;
  if (entry == nullptr) return append_to_nothing(ctx, key, text);
  if (!is_allowed_size(ctx, entry->string_size(), text.size())) {
    return ctx.reply.error(kStringTooLong);
  }
  if (!ctx.admission().memory_suffices(text.size()))
    return ctx.reply.error(ctx.admission().memory_refusal());
  ByteBuffer& bytes = entry->make_raw();
  if (!bytes.append(text)) return ctx.reply.error(ctx.admission().memory_refusal());
  ctx.commit(key, KeyEvent::kAppend);
  ctx.reply.integer(static_cast<int64_t>(bytes.size()));
}

/* STRLEN key */
void strlen(Context& ctx) {
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto entry = ctx.find_string(key);
  if (!entry) return;
  ctx.reply.integer(*entry == nullptr ? 0 : static_cast<int64_t>((*entry)->string_size()));
}

// Returns the bytes from `start` to `end`, both included. Negative positions count from the end of
// the text.
std::string_view part_of(std::string_view text, int64_t start, int64_t end) {
  const auto size = static_cast<int64_t>(text.size());
  if (start < 0 && end < 0 && start > end) return {};
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (end < 0) end = std::max<int64_t>(end + size, 0);
  end = std::min(end, size - 1);
  if (start > end) return {};
  return text.substr(static_cast<size_t>(start), static_cast<size_t>(end - start + 1));
}

/* GETRANGE key start end */
void getrange(Context& ctx) {
  const auto start = core::parse_int64(ctx.args[2]);
  const auto end = core::parse_int64(ctx.args[3]);
  if (!start || !end) return ctx.reply.error(kNotAnInteger);
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto entry = ctx.find_string(key);
  if (!entry) return;
  IntegerText scratch;
  ctx.reply.bulk(*entry == nullptr ? "" : part_of((*entry)->text(scratch), *start, *end));
}

// Returns the bytes of `entry`, or of a new entry if `entry` is null. The bytes are extended with
// zeros to at least `size`. Returns null if memory is short.
ByteBuffer* grown_bytes(Context& ctx, const KeyRef& key, Entry* entry, size_t size) {
  const size_t old_size = entry == nullptr ? 0 : entry->string_size();
  const size_t growth_bytes = size > old_size ? ByteBuffer::growth_bytes(old_size, size) : 0;
  if (!ctx.admission().memory_suffices(growth_bytes)) return nullptr;
  if (entry == nullptr) {
    ByteBuffer zeros;
    if (!zeros.resize_zeroed(size)) return nullptr;
    Entry& fresh = ctx.insert(key);
    fresh.set_raw(std::move(zeros));
    return &fresh.make_raw();
  }
  ByteBuffer& bytes = entry->make_raw();
  return size <= old_size || bytes.resize_zeroed(size) ? &bytes : nullptr;
}

/* SETRANGE key offset value */
void setrange(Context& ctx) {
  const auto offset = core::parse_int64(ctx.args[2]);
  if (!offset) return ctx.reply.error(kNotAnInteger);
  if (*offset < 0) return ctx.reply.error("ERR offset is out of range");
  const std::string_view text = ctx.args[3];
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto entry = ctx.find_string(key);
  if (!entry) return;
  if (text.empty()) {
    // An empty value changes nothing: the key is neither created nor extended.
    return ctx.reply.integer(*entry == nullptr ? 0 : static_cast<int64_t>((*entry)->string_size()));
  }
  const auto begin = static_cast<size_t>(*offset);
  if (!is_allowed_size(ctx, begin, text.size())) return ctx.reply.error(kStringTooLong);
  ByteBuffer* const bytes = grown_bytes(ctx, key, *entry, begin + text.size());
  if (bytes == nullptr) return ctx.reply.error(ctx.admission().memory_refusal());
  std::memcpy(bytes->data() + begin, text.data(), text.size());
  ctx.commit(key, KeyEvent::kSetRange);
  ctx.reply.integer(static_cast<int64_t>(bytes->size()));
}

const Command kSubstringRows[] = {
    {.name = "append",
     .arity = 3,
     .flags = kWrite | kDenyOom | kFast,
     .keys = one_key(kKeyRw | kKeyInsert),
     .since = "2.0.0",
     .summary = "Adds bytes to the end of a string",
     .complexity = "O(1) amortized",
     .syntax = "key value",
     .handler = append},
    {.name = "strlen",
     .arity = 2,
     .flags = kReadOnly | kFast,
     .keys = one_key(kKeyRo),
     .since = "2.2.0",
     .summary = "Returns how many bytes a string has",
     .complexity = "O(1)",
     .syntax = "key",
     .handler = strlen},
    {.name = "getrange",
     .arity = 4,
     .flags = kReadOnly,
     .keys = one_key(kKeyRo | kKeyAccess),
     .since = "2.4.0",
     .summary = "Returns the bytes between two positions",
     .complexity = "O(N) where N is the length of the returned string",
     .syntax = "key start end",
     .handler = getrange},
    {.name = "setrange",
     .arity = 4,
     .flags = kWrite | kDenyOom,
     .keys = one_key(kKeyRw | kKeyUpdate),
     .since = "2.2.0",
     .summary = "Overwrites bytes from a position on, growing the string",
     .complexity = "O(N) where N is the length of the value",
     .syntax = "key offset value",
     .handler = setrange},
    {.name = "substr",
     .arity = 4,
     .flags = kReadOnly,
     .keys = one_key(kKeyRo | kKeyAccess),
     .since = "1.0.0",
     .summary = "The older name of GETRANGE",
     .complexity = "O(N) where N is the length of the returned string",
     .syntax = "key start end",
     .handler = getrange},
};

}  // namespace

const CommandFamily kSubstringCommands{{.categories = kString, .group = "string"}, kSubstringRows};

}  // namespace server
