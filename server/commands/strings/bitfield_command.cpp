// SPDX-License-Identifier: MIT
//
// BITFIELD and BITFIELD_RO: commands with a list of reads and writes of small integers in one
// string.
#include "server/commands/strings/bitfield_command.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>

#include "core/bitfield.h"
#include "server/commands/strings/bitmap_access.h"

namespace server {
namespace {

using core::bitmap::FieldType;
using core::bitmap::Overflow;
using protocol::equals_ignore_case;

enum class Action : uint8_t { kGet, kSet, kIncrement };

struct FieldOperation {
  Action action = Action::kGet;
  Overflow overflow = Overflow::kWrap;
  FieldType type;
  uint64_t bit_offset = 0;
  int64_t operand = 0;
};

struct FieldProgram {
  // The vector holds the usual number of operations without an allocation.
  boost::container::small_vector<FieldOperation, 8> operations;
  uint64_t bits_needed = 0;  // number of bits up to the end of the last field written
  bool writes = false;
};

// Returns the number of arguments that a subcommand takes. Returns nullopt if the word is no
// subcommand or too few arguments follow.
std::optional<size_t> operand_count(std::string_view word, size_t following) {
  const auto is = [&](std::string_view name, size_t count) {
    return equals_ignore_case(word, name) && following >= count;
  };
  if (is("GET", 2)) return 2;
  if (is("SET", 3) || is("INCRBY", 3)) return 3;
  if (is("OVERFLOW", 1)) return 1;
  return std::nullopt;
}

core::Result<Overflow> parse_overflow(std::string_view word) {
  if (equals_ignore_case(word, "WRAP")) return Overflow::kWrap;
  if (equals_ignore_case(word, "SAT")) return Overflow::kSaturate;
  if (equals_ignore_case(word, "FAIL")) return Overflow::kFail;
  return core::Error{std::string(kInvalidOverflow)};
}

// Parses one operation. `arguments` starts with GET, SET or INCRBY, followed by its arguments.
core::Result<FieldOperation> parse_operation(Arguments arguments, uint64_t limit_bits) {
  FieldOperation operation;
  if (equals_ignore_case(arguments[0], "SET")) operation.action = Action::kSet;
  if (equals_ignore_case(arguments[0], "INCRBY")) operation.action = Action::kIncrement;
  const auto type = core::bitmap::parse_field_type(arguments[1]);
  if (!type) return type.error();
  operation.type = *type;
  const auto offset = core::bitmap::parse_field_offset(arguments[2], *type, limit_bits);
  if (!offset) return offset.error();
  operation.bit_offset = *offset;
  if (operation.action != Action::kGet) {
    const auto operand = core::parse_int64(arguments[3]);
    if (!operand) return core::Error{std::string(kNotAnInteger)};
    operation.operand = *operand;
  }
  return operation;
}

core::Result<FieldProgram> parse_program(Arguments arguments, uint64_t limit_bits) {
  FieldProgram program;
  Overflow overflow = Overflow::kWrap;
  while (!arguments.empty()) {
    const auto count = operand_count(arguments[0], arguments.size() - 1);
    if (!count) return core::Error{std::string(kSyntaxError)};
    if (*count == 1) {
      // An OVERFLOW option applies to the writes after it, up to the next OVERFLOW.
      const auto parsed = parse_overflow(arguments[1]);
      if (!parsed) return parsed.error();
      overflow = *parsed;
    } else {
      auto operation = parse_operation(arguments.first(*count + 1), limit_bits);
      if (!operation) return operation.error();
      operation->overflow = overflow;
      if (operation->action != Action::kGet) {
        program.writes = true;
        program.bits_needed =
            std::max(program.bits_needed, operation->bit_offset + operation->type.bits);
      }
      program.operations.push_back(*operation);
    }
    arguments = arguments.subspan(*count + 1);
  }
  return program;
}

enum class WriteOutcome : uint8_t { kRefused, kSameValue, kNewValue };

// Replies to one write. Returns kRefused if the value overflows under OVERFLOW FAIL.
WriteOutcome run_write(Context& ctx, const FieldOperation& operation, std::span<uint8_t> bytes) {
  const FieldType type = operation.type;
  const int64_t old = core::bitmap::read_field(bytes, type, operation.bit_offset);
  const bool is_set = operation.action == Action::kSet;
  const auto value =
      is_set ? core::bitmap::fit_value(type, operation.operand, operation.overflow)
             : core::bitmap::increment_value(type, old, operation.operand, operation.overflow);
  if (!value) {
    ctx.reply.null();
    return WriteOutcome::kRefused;
  }
  ctx.reply.integer(is_set ? old : *value);
  core::bitmap::write_field(bytes, type, operation.bit_offset, *value);
  return old == *value ? WriteOutcome::kSameValue : WriteOutcome::kNewValue;
}

void run_reads(Context& ctx, const FieldProgram& program) {
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto found = ctx.find_string_to_read(key);
  if (!found) return;
  core::keyspace::IntegerText scratch;
  const auto bytes = bits_of(*found, scratch);
  ctx.reply.array(program.operations.size());
  for (const FieldOperation& operation : program.operations) {
    ctx.reply.integer(core::bitmap::read_field(bytes, operation.type, operation.bit_offset));
  }
}

void run_all(Context& ctx, const FieldProgram& program) {
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto bits = writable_bits(ctx, key, (program.bits_needed + 7) / 8);
  if (!bits) return;
  // True if a field has a new value, or if the string has grown and at least one write succeeded.
  bool changed = false;
  ctx.reply.array(program.operations.size());
  for (const FieldOperation& operation : program.operations) {
    if (operation.action == Action::kGet) {
      ctx.reply.integer(
          core::bitmap::read_field(bits->bytes, operation.type, operation.bit_offset));
    } else {
      const WriteOutcome outcome = run_write(ctx, operation, bits->bytes);
      // A write that does not change the field's value still counts as a change if the string had
      // to grow.
      changed |=
          outcome == WriteOutcome::kNewValue || (outcome == WriteOutcome::kSameValue && bits->grew);
    }
  }
  // If every write overflows, the string may grow but gets no new value. As in Redis, WATCH does
  // not count this as a change.
  if (changed) {
    ctx.commit(key, KeyEvent::kSetBit);
  } else if (bits->grew) {
    commit_growth(ctx, key);
  }
}

}  // namespace

/* BITFIELD key [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL]
   SET encoding offset value | INCRBY encoding offset increment] ... */
void bitfield(Context& ctx) {
  const auto program = parse_program(ctx.args.subspan(2), offset_limit_bits(ctx));
  if (!program) return ctx.reply.error(program.error().message);
  program->writes ? run_all(ctx, *program) : run_reads(ctx, *program);
}

/* BITFIELD_RO key [GET encoding offset ...] */
void bitfield_ro(Context& ctx) {
  const auto program = parse_program(ctx.args.subspan(2), offset_limit_bits(ctx));
  if (!program) return ctx.reply.error(program.error().message);
  if (program->writes) return ctx.reply.error(kReadsOnly);
  run_reads(ctx, *program);
}

uint16_t bitfield_key_use(Arguments args) {
  for (Arguments arguments = args.subspan(2); !arguments.empty();) {
    const auto count = operand_count(arguments[0], arguments.size() - 1);
    if (!count || *count == 3) return kKeyRw | kKeyAccess | kKeyUpdate;
    arguments = arguments.subspan(*count + 1);
  }
  return kKeyRo | kKeyAccess;
}

}  // namespace server
