// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_reader.h"

#include <fmt/format.h>
#include "core/keyspace/eviction/key_use.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "persistence/filters/filter_codec.h"
#include "persistence/rdb/dump_payload.h"
#include "persistence/rdb/foreign_values.h"
#include "persistence/rdb/rdb_format.h"
#include "persistence/rdb/string_value.h"

namespace persistence {
namespace {

using core::keyspace::Entry;
using core::keyspace::EntryPtr;

// As long as an Entry can hold a key: what clients may send is a matter of their limits.
constexpr uint64_t kKeyBytesMax = std::numeric_limits<uint32_t>::max();
// Longer AUX fields hold nothing for us: scripts of old releases.
constexpr uint64_t kAuxBytesMax = uint64_t{1} << 20;
// Strings below this are taken without asking the budget.
constexpr uint64_t kSmallBytes = uint64_t{64} << 10;

class RdbReader {
 public:
  RdbReader(ByteSource& source, RdbVisitor& visitor, const core::MemoryBudget& budget,
            const RdbReadOptions& options)
      : reader_(source, {options.buffer_bytes, options.checks_sum, [this] { report(); }}),
        budget_(budget),
        visitor_(visitor),
        options_(options) {}

  core::Result<RdbReadResult> read() {
    header();
    while (reader_.ok() && !is_done_) record();
    if (reader_.ok()) footer();
    if (!reader_.ok()) return reader_.error();
    result_.total.bytes = reader_.offset();
    if (options_.may_be_followed) {
      result_.read_ahead = reader_.read_ahead();
    } else if (!reader_.at_end()) {
      reader_.fail("bytes follow the end of the snapshot");
      return reader_.error();
    }
    return std::move(result_);
  }

 private:
  void header();
  void record();
  bool key_attribute(uint8_t opcode);
  void file_record(uint8_t opcode);
  void key(uint8_t type);
  void string_key(const std::string& name);
  void module_key(const std::string& name);
  void foreign_key(uint8_t type);
  void aux();
  void resize();
  void module_aux();
  void key_meta_or_slot_import();
  void footer();

  std::string text(uint64_t size_max, std::string_view what);
  bool fits(uint64_t size);
  void hand_over(EntryPtr entry);
  // False when foreign types are refused.
  bool accept_foreign(std::string_view type);
  void check(const core::Result<>& visited) {
    if (!visited) reader_.fail(visited.error().message);
  }
  void report() const {
    if (options_.on_progress) options_.on_progress({reader_.offset(), result_.total.keys});
  }

  StreamReader reader_;
  const core::MemoryBudget& budget_;
  RdbVisitor& visitor_;
  const RdbReadOptions& options_;
  RdbReadResult result_;
  RdbDialect dialect_ = RdbDialect::kRedis;
  uint64_t database_ = 0;
  int64_t expires_at_ms_ = core::keyspace::kNoExpiry;
  uint64_t idle_s_ = 0;
  uint8_t use_count_ = core::keyspace::kFirstUseCount;
  bool is_done_ = false;
};

void RdbReader::header() {
  std::array<char, rdb::kHeaderBytes> bytes{};
  if (!reader_.read(bytes)) return;
  const std::string_view header(bytes.data(), bytes.size());
  result_.is_valkey = header.starts_with(rdb::kValkeyMagic);
  const size_t magic_bytes = result_.is_valkey ? rdb::kValkeyMagic.size() : rdb::kMagic.size();
  if (!result_.is_valkey && !header.starts_with(rdb::kMagic)) {
    return reader_.fail("this is no snapshot: it does not begin with REDIS or VALKEY");
  }
  const char* end = header.data() + header.size();
  const auto parsed = std::from_chars(header.data() + magic_bytes, end, result_.version);
  if (parsed.ec != std::errc() || parsed.ptr != end || result_.version == 0) {
    return reader_.fail("the snapshot's version is no number from 1 up");
  }
  const bool is_valkey = result_.is_valkey || result_.version >= rdb::kFirstValkeyVersion;
  dialect_ = is_valkey ? RdbDialect::kValkey : RdbDialect::kRedis;
}

void RdbReader::record() {
  const uint8_t opcode = reader_.u8();
  if (!reader_.ok() || key_attribute(opcode)) return;
  constexpr uint8_t kFirstOpcode = rdb::kValkeyUpdate;
  if (opcode >= kFirstOpcode) return file_record(opcode);
  key(opcode);
  expires_at_ms_ = core::keyspace::kNoExpiry;
  idle_s_ = 0;
  use_count_ = core::keyspace::kFirstUseCount;
}

// What stands before the one key that it is about.
bool RdbReader::key_attribute(uint8_t opcode) {
  constexpr int64_t kSecondMs = 1000;
  switch (opcode) {
    case rdb::kExpirySeconds:
      expires_at_ms_ = static_cast<int32_t>(reader_.u32()) * kSecondMs;
      break;
    case rdb::kExpiryMilliseconds:
      expires_at_ms_ = reader_.i64();
      break;
    case rdb::kFrequency:
      use_count_ = reader_.u8();
      return true;
    case rdb::kIdle:
      idle_s_ = reader_.length();
      return true;
    default:
      return false;
  }
  // A time before 1970 has passed like any other; -1 means none to us.
  expires_at_ms_ = std::max<int64_t>(expires_at_ms_, 0);
  return true;
}

void RdbReader::file_record(uint8_t opcode) {
  switch (opcode) {
    case rdb::kEnd:
      is_done_ = true;
      return;
    case rdb::kSelectDatabase:
      database_ = reader_.length();
      return;
    case rdb::kResizeDatabase:
      return resize();
    case rdb::kAux:
      return aux();
    case rdb::kModuleAux:
      return module_aux();
    case rdb::kFunction:
      if (accept_foreign("function library")) reader_.string().skip();
      return;
    case rdb::kSlotInfo:
      for (int i = 0; i < 3; ++i) reader_.length();
      return;
    case rdb::kKeyMetaOrSlotImport:
      return key_meta_or_slot_import();
    default:
      return reader_.fail(fmt::format("records of kind {} cannot be read", opcode));
  }
}

void RdbReader::resize() {
  const uint64_t keys = reader_.length();
  const uint64_t expires = reader_.length();
  if (reader_.ok()) visitor_.size_hint(database_, keys, expires);
}

void RdbReader::aux() {
  StringReader name_string = reader_.string();
  if (name_string.size() > kAuxBytesMax) return reader_.fail("an AUX field's name is too long");
  std::string name(name_string.size(), '\0');
  name_string.read(name);
  StringReader value_string = reader_.string();
  if (value_string.size() > kAuxBytesMax) {
    value_string.skip();
    return;
  }
  std::string value(value_string.size(), '\0');
  if (value_string.read(value)) check(visitor_.aux(name, value));
}

void RdbReader::module_aux() {
  // Written by modules even where they are not used, so that it says nothing of lost data.
  reader_.length();
  ModuleReader fields(reader_);
  fields.skip_to_end();
}

void RdbReader::key_meta_or_slot_import() {
  if (dialect_ == RdbDialect::kRedis) {
    for (uint64_t left = reader_.length(); left > 0 && reader_.ok(); --left) {
      reader_.u32();
      ModuleReader(reader_).skip_to_end();
    }
    return;
  }
  reader_.string().skip();
  for (uint64_t left = reader_.length(); left > 0 && reader_.ok(); --left) {
    reader_.length();
    reader_.length();
  }
}

void RdbReader::key(uint8_t type) {
  if (type != kStringType && type != kModuleType) return foreign_key(type);
  const std::string name = text(kKeyBytesMax, "a key's name is too long");
  if (!reader_.ok()) return;
  if (type == kStringType) return string_key(name);
  module_key(name);
}

void RdbReader::string_key(const std::string& name) {
  StringReader text = reader_.string();
  if (!reader_.ok()) return;
  EntryPtr entry = Entry::create(name);
  if (!options_.builds_values) {
    if (text.skip()) hand_over(std::move(entry));
    return;
  }
  if (!fits(text.size())) return;
  const StringOutcome outcome = read_string_value(text, *entry);
  if (outcome == StringOutcome::kNoMemory) reader_.fail(kValueDoesNotFit);
  if (outcome == StringOutcome::kRead) hand_over(std::move(entry));
}

void RdbReader::module_key(const std::string& name) {
  const uint64_t id = reader_.length();
  if (!reader_.ok()) return;
  if (!is_filter_module(id)) {
    if (accept_foreign("module " + module_name(id))) ModuleReader(reader_).skip_to_end();
    return;
  }
  EntryPtr entry = Entry::create(name);
  if (!options_.builds_values) {
    ModuleReader(reader_).skip_to_end();
    if (reader_.ok()) hand_over(std::move(entry));
    return;
  }
  auto filter = decode_filter_of(id, reader_, budget_);
  if (!filter) {
    const bool fits = filter.error().message != kDoesNotFit;
    return reader_.fail(fits ? std::string_view(filter.error().message) : kValueDoesNotFit);
  }
  entry->set_filter(std::move(*filter));
  hand_over(std::move(entry));
}

void RdbReader::foreign_key(uint8_t type) {
  if (!accept_foreign(foreign_type_name(type, dialect_))) return;
  reader_.string().skip();
  if (reader_.ok()) skip_foreign_value(reader_, type, dialect_);
}

bool RdbReader::accept_foreign(std::string_view type) {
  if (options_.foreign_types == ForeignTypes::kRefuse) {
    reader_.fail(fmt::format(
        "this server has no values of type '{}'; rdb-foreign-types skip leaves them out", type));
    return false;
  }
  ++result_.foreign_keys;
  visitor_.foreign(database_, type);
  return true;
}

void RdbReader::hand_over(EntryPtr entry) {
  entry->set_expires_at_ms(expires_at_ms_);
  entry->set_use_bits(core::keyspace::KeyUse::idle_for(idle_s_, 0, use_count_).bits());
  ++result_.total.keys;
  check(visitor_.entry(database_, std::move(entry)));
}

std::string RdbReader::text(uint64_t size_max, std::string_view what) {
  StringReader string = reader_.string();
  if (string.size() > size_max) reader_.fail(what);
  if (!reader_.ok() || !fits(string.size())) return {};
  std::string bytes(string.size(), '\0');
  string.read(bytes);
  return bytes;
}

bool RdbReader::fits(uint64_t size) {
  const bool does_fit = size < kSmallBytes || budget_.fits(size);
  if (!does_fit) reader_.fail(kValueDoesNotFit);
  return does_fit;
}

void RdbReader::footer() {
  if (result_.version < rdb::kFirstVersionWithSum && !result_.is_valkey) return;
  const uint64_t computed = reader_.sum();
  result_.sum = reader_.u64();
  result_.has_sum = result_.sum != 0;
  if (!reader_.ok() || !result_.has_sum || !options_.checks_sum) return;
  if (computed != result_.sum) {
    reader_.fail(
        fmt::format("the check sum is {:016x}, the bytes give {:016x}", result_.sum, computed));
  }
}

}  // namespace

core::Result<RdbReadResult> read_rdb(ByteSource& source, RdbVisitor& visitor,
                                     const core::MemoryBudget& budget,
                                     const RdbReadOptions& options) {
  try {
    return RdbReader(source, visitor, budget, options).read();
  } catch (const std::bad_alloc&) {
    return core::Error{"OOM not enough memory to read a snapshot"};
  }
}

}  // namespace persistence
