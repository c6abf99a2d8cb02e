// SPDX-License-Identifier: MIT
#include "server/commands/keys/dump_value.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "persistence/filters/filter_codec.h"
#include "persistence/rdb/dump_payload.h"
#include "persistence/rdb/foreign_values.h"
#include "persistence/rdb/string_value.h"
#include "server/commands/bloom/bloom_memory.h"
#include "server/dispatch/admission.h"

namespace server {
namespace {

using core::keyspace::Entry;
using core::keyspace::EntryPtr;
using persistence::Packing;

// Returns the kind of a payload's value if this server does not support it, otherwise an empty
// text. In Valkey the types have the same names as in Redis.
std::string unsupported_kind(std::string_view body) {
  persistence::StreamReader reader(body);
  const uint8_t type = reader.u8();
  if (!reader.ok()) return {};
  constexpr auto kDialect = persistence::RdbDialect::kRedis;
  if (persistence::can_skip_foreign(type, kDialect)) {
    return "type " + persistence::foreign_type_name(type, kDialect);
  }
  if (type != persistence::kModuleType) return {};
  const uint64_t id = reader.length();
  if (!reader.ok() || persistence::is_filter_module(id)) return {};
  return "module " + persistence::module_name(id);
}

core::Result<> restore_string(const Admission& admission, persistence::StreamReader& reader,
                              Entry& entry) {
  persistence::StringReader text = reader.string();
  if (!reader.ok()) return core::Error{std::string(kBadFormat)};
  if (!admission.allows_string(text.size())) {
    return core::Error{std::string(kStringTooLong)};
  }
  if (!admission.memory_suffices(text.size())) return admission.out_of_memory();
  switch (persistence::read_string_value(text, entry)) {
    case persistence::StringOutcome::kRead:
      return {};
    case persistence::StringOutcome::kDamaged:
      return core::Error{std::string(kBadFormat)};
    case persistence::StringOutcome::kNoMemory:
      break;
  }
  return admission.out_of_memory();
}

core::Result<> restore_filter(const Admission& admission, persistence::StreamReader& reader,
                              Entry& entry) {
  const LoadBudget budget(admission);
  auto filter = persistence::decode_filter(reader, budget);
  if (!filter) {
    const bool fits = filter.error().code != core::ErrorCode::kOutOfMemory;
    return core::Error{std::string(fits ? kBadFormat : budget.refusal())};
  }
  if (!budget.admits(**filter)) return core::Error{std::string(kFilterTooLarge)};
  entry.set_filter(std::move(*filter));
  return {};
}

}  // namespace

std::string dump_of(const Entry& entry) {
  std::string payload;
  persistence::ByteWriter writer(payload);
  if (entry.is_filter()) {
    writer.u8(persistence::kModuleType);
    persistence::encode_filter(writer, entry.filter(), Packing::kIfSmaller);
  } else {
    core::keyspace::IntegerText scratch;
    writer.u8(persistence::kStringType);
    writer.string(entry.text(scratch), Packing::kIfSmaller);
  }
  persistence::append_dump_footer(payload);
  return payload;
}

core::Result<EntryPtr> restored_entry(const Admission& admission, std::string_view name,
                                      std::string_view payload) {
  const auto body = persistence::checked_dump_body(payload);
  if (!body) return core::Error{std::string(kWrongFooter)};
  persistence::StreamReader reader(*body);
  const bool has_type = !body->empty();
  const uint8_t type = reader.u8();
  if (const std::string kind = unsupported_kind(*body); !kind.empty()) {
    return core::Error{fmt::format("{}: values of {} are not supported here", kBadFormat, kind)};
  }
  EntryPtr entry = Entry::create(name);
  core::Result<> restored = core::Error{std::string(kBadFormat)};
  if (has_type && type == persistence::kStringType)
    restored = restore_string(admission, reader, *entry);
  if (has_type && type == persistence::kModuleType)
    restored = restore_filter(admission, reader, *entry);
  if (!restored) return restored.error();
  return entry;
}

}  // namespace server
