// SPDX-License-Identifier: MIT
#include "persistence/rdb/string_value.h"

#include <array>
#include <span>
#include <utility>

namespace persistence {

StringOutcome read_string_value(StringReader& text, core::keyspace::Entry& entry) {
  if (const auto whole = text.take_whole()) {
    return entry.set_string(*whole) ? StringOutcome::kRead : StringOutcome::kNoMemory;
  }
  if (text.size() <= core::keyspace::kEmbeddedStringSizeMax) {
    std::array<char, core::keyspace::kEmbeddedStringSizeMax> buffer;
    const std::span<char> bytes(buffer.data(), text.size());
    if (!text.read(bytes)) return StringOutcome::kDamaged;
    const bool is_set = entry.set_string({bytes.data(), bytes.size()});
    return is_set ? StringOutcome::kRead : StringOutcome::kNoMemory;
  }
  // The text is too long for a number, so the bytes are read into their final memory without a
  // second copy.
  core::keyspace::ByteBuffer bytes;
  if (!bytes.resize_for_overwrite(text.size())) return StringOutcome::kNoMemory;
  if (!text.read_fresh({bytes.data(), bytes.size()})) return StringOutcome::kDamaged;
  entry.set_raw(std::move(bytes));
  return StringOutcome::kRead;
}

}  // namespace persistence
