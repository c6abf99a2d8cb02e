// SPDX-License-Identifier: MIT
//
// SETBIT, GETBIT, BITCOUNT, BITPOS and BITOP: strings as bitmaps. BITFIELD is in
// bitfield_command.cpp.
#include "core/bitmap.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>

#include "core/bit_operations.h"
#include "core/bitfield.h"
#include "core/keyspace/reclaimer.h"
#include "server/commands/families.h"
#include "server/commands/strings/bitfield_command.h"
#include "server/commands/strings/bitmap_access.h"

namespace server {
namespace {

using core::bitmap::BitOperation;
using core::keyspace::IntegerText;
using protocol::ArgumentCursor;

/* SETBIT key offset value */
void setbit(Context& ctx) {
  const auto offset = core::bitmap::parse_bit_offset(ctx.args[2], offset_limit_bits(ctx));
  if (!offset) return ctx.reply.error(offset.error().message);
  const char bit = ctx.args[3].size() == 1 ? ctx.args[3].front() : '\0';
  if (bit != '0' && bit != '1') return ctx.reply.error("ERR bit is not an integer or out of range");
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto bits = writable_bits(ctx, key, *offset / 8 + 1);
  if (!bits) return;
  const bool value = bit == '1';
  const bool old = core::bitmap::set_bit(bits->bytes, *offset, value);
  if (bits->grew || old != value) ctx.commit(key, KeyEvent::kSetBit);
  ctx.reply.integer(old ? 1 : 0);
}

/* GETBIT key offset */
void getbit(Context& ctx) {
  const auto offset = core::bitmap::parse_bit_offset(ctx.args[2], offset_limit_bits(ctx));
  if (!offset) return ctx.reply.error(offset.error().message);
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto found = ctx.find_string(key);
  if (!found) return;
  IntegerText scratch;
  ctx.reply.integer(core::bitmap::get_bit(bits_of(*found, scratch), *offset) ? 1 : 0);
}

// The range of bits for BITCOUNT or BITPOS, with positions as the client wrote them.
struct BitRange {
  int64_t start = 0;
  int64_t end = -1;
  bool has_end = true;
  bool in_bits = false;
};

// Returns whether the unit is BIT. The cursor stores an error if it is neither BIT nor BYTE.
bool counts_bits(ArgumentCursor& cursor, std::string_view unit) {
  const bool is_bit = protocol::equals_ignore_case(unit, "BIT");
  if (!is_bit && !protocol::equals_ignore_case(unit, "BYTE")) cursor.fail(kSyntaxError);
  return is_bit;
}

// Parses "start end [BYTE | BIT]" of BITCOUNT. The argument cursor stores an error for a later
// reply, because other errors take precedence.
BitRange parse_count_range(ArgumentCursor& cursor) {
  BitRange range;
  const size_t count = cursor.remaining();
  if (count == 0) return range;
  if (count != 2 && count != 3) cursor.fail(kSyntaxError);
  range.start = cursor.take_int64();
  range.end = cursor.take_int64();
  if (count == 3) range.in_bits = counts_bits(cursor, cursor.next());
  return range;
}

// Parses "[start [end [BYTE | BIT]]]" of BITPOS. An error in the unit takes precedence over an
// error in `end`.
BitRange parse_position_range(ArgumentCursor& cursor) {
  BitRange range;
  const size_t count = cursor.remaining();
  range.has_end = count > 1;
  if (count == 0) return range;
  if (count > 3) cursor.fail(kSyntaxError);
  range.start = cursor.take_int64();
  if (cursor.ok() && count == 3) range.in_bits = counts_bits(cursor, cursor.rest()[1]);
  if (range.has_end) range.end = cursor.take_int64();
  return range;
}

struct BitSpan {
  uint64_t first = 0;
  uint64_t last = 0;
};

// Converts negative positions and clips the range to the value. Returns nullopt if the clipped
// range is empty.
std::optional<BitSpan> resolve(const BitRange& range, size_t size_bytes) {
  const auto total = static_cast<int64_t>(range.in_bits ? size_bytes * 8 : size_bytes);
  const auto from_front = [&](int64_t index) {
    return index < 0 ? std::max<int64_t>(total + index, 0) : index;
  };
  const int64_t first = from_front(range.start);
  const int64_t last = std::min(from_front(range.end), total - 1);
  if (first > last) return std::nullopt;
  const auto from = static_cast<uint64_t>(first);
  const auto to = static_cast<uint64_t>(last);
  return range.in_bits ? BitSpan{from, to} : BitSpan{from * 8, to * 8 + 7};
}

/* BITCOUNT key [start end [BYTE | BIT]] */
void bitcount(Context& ctx) {
  ArgumentCursor cursor(ctx.args.subspan(2));
  const BitRange range = parse_count_range(cursor);
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto found = ctx.find_string(key);
  if (!found) return;
  if (*found == nullptr) return ctx.reply.integer(0);
  // For BITCOUNT, two negative positions in reverse order are an empty range, even if clipping
  // moves both to the first byte. BITPOS has no such rule.
  if (range.end < range.start && range.start < 0) return ctx.reply.integer(0);
  if (!cursor.ok()) return ctx.reply.error(cursor.error());
  IntegerText scratch;
  const auto bytes = bits_of(*found, scratch);
  const auto span = resolve(range, bytes.size());
  const uint64_t count = span ? core::bitmap::count_bits(bytes, span->first, span->last) : 0;
  ctx.reply.integer(static_cast<int64_t>(count));
}

int64_t bit_position(std::span<const uint8_t> bytes, bool bit, const BitRange& range) {
  const auto span = resolve(range, bytes.size());
  if (!span) return -1;
  if (const auto position = core::bitmap::find_bit(bytes, bit, span->first, span->last)) {
    return static_cast<int64_t>(*position);
  }
  // As in Redis, BITPOS without an end argument treats the value as if zeros followed it. So a
  // search for 0 that finds no bit in the value returns the position after the last bit.
  return bit || range.has_end ? -1 : static_cast<int64_t>(bytes.size() * 8);
}

/* BITPOS key bit [start [end [BYTE | BIT]]] */
void bitpos(Context& ctx) {
  ArgumentCursor cursor(ctx.args.subspan(2));
  const int64_t bit = cursor.take_int64();
  if (!cursor.ok()) return ctx.reply.error(cursor.error());
  if (bit != 0 && bit != 1) return ctx.reply.error("ERR The bit argument must be 1 or 0.");
  const BitRange range = parse_position_range(cursor);
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto found = ctx.find_string(key);
  if (!found) return;
  if (*found == nullptr) return ctx.reply.integer(bit == 1 ? -1 : 0);
  if (!cursor.ok()) return ctx.reply.error(cursor.error());
  IntegerText scratch;
  ctx.reply.integer(bit_position(bits_of(*found, scratch), bit == 1, range));
}

struct OperationName {
  std::string_view word;
  BitOperation operation;
  size_t sources_min;
  bool is_in_redis_7 = true;
};

constexpr OperationName kOperationNames[] = {
    {"AND", BitOperation::kAnd, 1},
    {"OR", BitOperation::kOr, 1},
    {"XOR", BitOperation::kXor, 1},
    {"NOT", BitOperation::kNot, 1},
    {"DIFF", BitOperation::kDiff, 2, false},
    {"DIFF1", BitOperation::kDiff1, 2, false},
    {"ANDOR", BitOperation::kAndOr, 2, false},
    {"ONE", BitOperation::kOne, 1, false},
};

core::Result<OperationName> parse_operation(std::string_view word, size_t source_count) {
  const auto* name = std::ranges::find_if(kOperationNames, [&](const OperationName& candidate) {
    return protocol::equals_ignore_case(candidate.word, word);
  });
  if (name == std::end(kOperationNames)) return core::Error{std::string(kSyntaxError)};
  if (name->operation == BitOperation::kNot && source_count != 1) {
    return core::Error{"ERR BITOP NOT must be called with a single source key."};
  }
  if (source_count < name->sources_min) {
    return core::Error{"ERR BITOP " + std::string(name->word) +
                       " must be called with at least two source keys."};
  }
  return *name;
}

// The values of the source keys of BITOP. The values do not move, because the keys are locked.
struct BitSources {
  boost::container::small_vector<std::span<const uint8_t>, 8> bytes;
  // Stores the digits of integer values. The vector must not reallocate, because views point into
  // it.
  boost::container::small_vector<IntegerText, 8> scratch;
  size_t longest_bytes = 0;
};

// Finds the values of all sources. If a key holds a value that is not a string, replies with the
// error and returns false.
bool find_sources(Context& ctx, Arguments names, BitSources& sources) {
  sources.scratch.resize(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found = ctx.find_string_to_read(ctx.keyspace().ref(names[i]));
    if (!found) return false;
    const auto bytes = bits_of(*found, sources.scratch[i]);
    sources.bytes.push_back(bytes);
    sources.longest_bytes = std::max(sources.longest_bytes, bytes.size());
  }
  return true;
}

// Commits the result of BITOP. `result` is the stored entry, or null if the destination was
// deleted. Redis 7 does not know all operations, so the effect of a newer one is a SET or a DEL.
void commit_result(Context& ctx, const KeyRef& destination, const OperationName& operation,
                   const Entry* result) {
  const KeyEvent event = result == nullptr ? KeyEvent::kDel : KeyEvent::kSet;
  if (operation.is_in_redis_7) return ctx.commit(destination, event);
  if (result == nullptr) return ctx.commit(destination, event, {"DEL", destination.name});
  IntegerText scratch;
  ctx.commit(destination, event, {"SET", destination.name, result->text(scratch)});
}

/* BITOP AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE destkey key [key ...] */
void bitop(Context& ctx) {
  const Arguments names = ctx.args.subspan(3);
  const auto operation = parse_operation(ctx.args[1], names.size());
  if (!operation) return ctx.reply.error(operation.error().message);
  const KeyRef destination = ctx.key(2);
  EntryPtr replaced;
  auto lock = ctx.lock_keys();
  BitSources sources;
  if (!find_sources(ctx, names, sources)) return;
  auto result = zeroed_buffer(ctx, sources.longest_bytes);
  if (!result) return;
  core::bitmap::combine(operation->operation, {sources.bytes.data(), sources.bytes.size()},
                        as_bytes(*result));
  if (ctx.find(destination) != nullptr) {
    replaced = ctx.keyspace().erase(ctx.database(), destination);
  }
  if (sources.longest_bytes > 0) {
    Entry& entry = ctx.keyspace().insert(ctx.database(), destination);
    entry.touch(ctx.access_clock_s());
    if (replaced != nullptr) entry.set_use_bits(replaced->use_bits());
    entry.set_raw(std::move(*result));
    if (replaced == nullptr) ctx.notify(KeyEvent::kNew, ctx.database(), destination);
    commit_result(ctx, destination, *operation, &entry);
  } else if (replaced != nullptr) {
    // An empty result deletes the destination. If the destination is missing, nothing changes.
    commit_result(ctx, destination, *operation, nullptr);
  }
  lock.unlock();
  if (replaced != nullptr) ctx.environment.reclaimer.drop(std::move(replaced));
  ctx.reply.integer(static_cast<int64_t>(sources.longest_bytes));
}

constexpr uint16_t kAccessUpdate = kKeyRw | kKeyAccess | kKeyUpdate;
constexpr auto kReadKey = one_key(kKeyRo | kKeyAccess);

const Command kBitmapRows[] = {
    {.name = "setbit",
     .arity = 4,
     .flags = kWrite | kDenyOom,
     .keys = one_key(kAccessUpdate),
     .since = "2.2.0",
     .summary = "Sets or clears one bit of a string and returns its old value",
     .syntax = "key offset value:integer",
     .handler = setbit},
    {.name = "getbit",
     .arity = 3,
     .flags = kReadOnly | kFast,
     .keys = kReadKey,
     .since = "2.2.0",
     .summary = "Returns one bit of a string",
     .syntax = "key offset",
     .handler = getbit},
    {.name = "bitcount",
     .arity = -2,
     .flags = kReadOnly,
     .keys = kReadKey,
     .since = "2.6.0",
     .summary = "Counts the bits that are set in a string or a part of it",
     .complexity = "O(N) where N is the number of bytes in the range",
     .syntax = "key [start end [BYTE | BIT]]",
     .handler = bitcount},
    {.name = "bitpos",
     .arity = -3,
     .flags = kReadOnly,
     .keys = kReadKey,
     .since = "2.8.7",
     .summary = "Finds the first bit that is set, or clear, in a string or a part of it",
     .complexity = "O(N) where N is the number of bytes in the range",
     .syntax = "key bit [start [end [BYTE | BIT]]]",
     .handler = bitpos},
    {.name = "bitop",
     .arity = -4,
     .flags = kWrite | kDenyOom,
     .keys = {{{2, 2, 1, kKeyOw | kKeyUpdate}, {3, -1, 1, kKeyRo | kKeyAccess}}},
     .since = "2.6.0",
     .summary = "Combines strings bit by bit and stores the result",
     .complexity = "O(N) where N is the sum of the lengths of the strings",
     .syntax = "(AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE) destkey key ...",
     .handler = bitop},
    {.name = "bitfield",
     .arity = -2,
     .flags = kWrite | kDenyOom,
     .keys = one_key(kAccessUpdate | kKeyVariable, "Only reads when every operation is a GET"),
     .since = "3.2.0",
     .summary = "Reads and writes integers of any width within a string",
     .complexity = "O(1) for each subcommand specified",
     .syntax = "key [(GET encoding:string offset) | ([OVERFLOW (WRAP | SAT | FAIL)] "
               "((SET encoding:string offset value:integer) | "
               "(INCRBY encoding:string offset increment))) ...]",
     .handler = bitfield,
     .key_use = bitfield_key_use},
    {.name = "bitfield_ro",
     .arity = -2,
     .flags = kReadOnly | kFast,
     .keys = kReadKey,
     .since = "6.0.0",
     .summary = "Reads integers of any width within a string",
     .complexity = "O(1) for each subcommand specified",
     .syntax = "key [GET encoding:string offset ...]",
     .handler = bitfield_ro},
};

}  // namespace

const CommandFamily kBitmapCommands{
    {.categories = kBitmap, .group = "bitmap", .complexity = "O(1)"}, kBitmapRows};

}  // namespace server
