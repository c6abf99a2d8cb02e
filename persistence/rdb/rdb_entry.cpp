// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_entry.h"

#include <limits>
#include <utility>

#include "core/keyspace/key_use.h"
#include "persistence/bytes/module_value.h"
#include "persistence/filters/filter_codec.h"
#include "persistence/rdb/rdb_reader.h"
#include "persistence/rdb/string_value.h"

namespace persistence {

using core::keyspace::Entry;
using core::keyspace::EntryPtr;

namespace {

// The maximum size of an entry's key. The limits for clients do not apply to snapshots.
constexpr uint64_t kKeyBytesMax = std::numeric_limits<uint32_t>::max();
// Strings that are smaller than this are read without checking the budget.
constexpr uint64_t kSmallBytes = uint64_t{64} << 10;

}  // namespace

void RdbKeyAttributes::apply_to(Entry& entry) const {
  entry.set_expires_at_ms(expires_at_ms);
  entry.set_use_bits(core::keyspace::KeyUse::idle_for(idle_s, 0, use_count).bits());
}

std::string RdbEntryReader::name() {
  StringReader string = reader_.string();
  if (string.size() > kKeyBytesMax) reader_.fail(kKeyNameTooLong);
  if (!reader_.ok() || !fits(string.size())) return {};
  std::string bytes(string.size(), '\0');
  string.read(bytes);
  return bytes;
}

EntryPtr RdbEntryReader::string(const std::string& name) {
  StringReader text = reader_.string();
  if (!reader_.ok()) return nullptr;
  EntryPtr entry = Entry::create(name);
  if (!builds_values_) return text.skip() ? std::move(entry) : nullptr;
  if (!fits(text.size())) return nullptr;
  const StringOutcome outcome = read_string_value(text, *entry);
  if (outcome == StringOutcome::kNoMemory) fail_for_memory();
  return outcome == StringOutcome::kRead ? std::move(entry) : nullptr;
}

EntryPtr RdbEntryReader::filter(const std::string& name, uint64_t id) {
  if (!reader_.ok()) return nullptr;
  EntryPtr entry = Entry::create(name);
  if (!builds_values_) {
    ModuleReader(reader_).skip_to_end();
    return reader_.ok() ? std::move(entry) : nullptr;
  }
  auto filter = decode_filter_of(id, reader_, budget_);
  if (!filter) {
    const core::Error& error = filter.error();
    error.code == core::ErrorCode::kOutOfMemory ? fail_for_memory() : reader_.fail(error.message);
    return nullptr;
  }
  entry->set_filter(std::move(*filter));
  return entry;
}

bool RdbEntryReader::fits(uint64_t size) {
  const bool does_fit = size < kSmallBytes || budget_.fits(size);
  if (!does_fit) fail_for_memory();
  return does_fit;
}

void RdbEntryReader::fail_for_memory() {
  reader_.fail(kValueDoesNotFit, core::ErrorCode::kOutOfMemory);
}

}  // namespace persistence
