// SPDX-License-Identifier: MIT
#include "persistence/rdb/foreign_values.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>

#include "persistence/bytes/module_value.h"

namespace persistence {
namespace {

enum class Form : uint8_t {
  kUnknown,
  kOneString,
  kStrings,          // stored as a count n, then n strings
  kPairs,            // stored as a count and twice as many strings
  kTextScores,       // stored as a count, then for each element a string and a number as text
  kDoubleScores,     // stored as a count, then for each element a string and a double
  kContainers,       // stored as a count, then for each element a length and a string
  kPairsWithExpiry,  // stored as a count, then two strings and 8 bytes for each element
  kHashWithExpiry,   // stored as 8 bytes, a count, then a length and two strings for each element
  kListpackExpiry,   // stored as 8 bytes and a string
  kStream1,
  kStream2,
  kStream3,
  kStream4,
  kStream5,
  kArray,
  kTemplate,                // stored as a count n, then n names and one string
  kTemplateArray,           // stored as a count n, then 2n strings
  kTemplateArrayReference,  // stored as a template's id, then a string for each field
  kLength,
};

struct ForeignType {
  std::string_view name;
  Form form = Form::kUnknown;
};

// The foreign types of Redis, indexed by type id.
constexpr std::array<ForeignType, 34> kRedisTypes = {{
    {"string"},
    {"list", Form::kStrings},
    {"set", Form::kStrings},
    {"zset", Form::kTextScores},
    {"hash", Form::kPairs},
    {"zset", Form::kDoubleScores},
    {"module of a release candidate"},
    {"module"},
    {},
    {"hash", Form::kOneString},
    {"list", Form::kOneString},
    {"set", Form::kOneString},
    {"zset", Form::kOneString},
    {"hash", Form::kOneString},
    {"list", Form::kStrings},
    {"stream", Form::kStream1},
    {"hash", Form::kOneString},
    {"zset", Form::kOneString},
    {"list", Form::kContainers},
    {"stream", Form::kStream2},
    {"set", Form::kOneString},
    {"stream", Form::kStream3},
    {"hash", Form::kHashWithExpiry},
    {"hash", Form::kOneString},
    {"hash", Form::kHashWithExpiry},
    {"hash", Form::kListpackExpiry},
    {"stream", Form::kStream4},
    {"stream", Form::kStream5},
    {"array", Form::kArray},
    {"hash", Form::kTemplate},
    {"hash", Form::kOneString},
    {"hash", Form::kTemplateArray},
    {"hash", Form::kTemplateArrayReference},
    {"gcra", Form::kLength},
}};
constexpr uint8_t kFirstDivergingType = 22;
constexpr uint8_t kHashReleaseCandidate = 22;
constexpr std::array<ForeignType, 2> kValkeyTypes = {{
    {"hash", Form::kPairsWithExpiry},
    {"hash"},
}};

std::optional<ForeignType> find_type(uint8_t type, RdbDialect dialect) {
  if (dialect == RdbDialect::kValkey && type >= kFirstDivergingType) {
    const size_t index = type - kFirstDivergingType;
    if (index < kValkeyTypes.size()) return kValkeyTypes[index];
    return std::nullopt;
  }
  if (type < kRedisTypes.size() && !kRedisTypes[type].name.empty()) return kRedisTypes[type];
  return std::nullopt;
}

// Skips a number that is stored as its size and its text. Special values of the size encode
// infinities and NaN, without a text.
void skip_text_score(StreamReader& reader) {
  constexpr uint8_t kFirstSpecial = 253;
  const uint8_t size = reader.u8();
  if (size < kFirstSpecial) reader.skip(size);
}

void skip_strings(StreamReader& reader, uint64_t count) {
  for (; count > 0 && reader.ok(); --count) reader.string().skip();
}

void skip_lengths(StreamReader& reader, int count) {
  for (; count > 0; --count) reader.length();
}

constexpr uint64_t kStreamIdBytes = 16;
constexpr uint64_t kTimeBytes = 8;

void skip_stream_ids(StreamReader& reader) {
  for (uint64_t left = reader.length(); left > 0 && reader.ok(); --left) {
    reader.skip(kStreamIdBytes);
  }
}

void skip_stream_group(StreamReader& reader, int version) {
  reader.string().skip();
  skip_lengths(reader, version >= 2 ? 3 : 2);
  for (uint64_t left = reader.length(); left > 0 && reader.ok(); --left) {
    reader.skip(kStreamIdBytes + kTimeBytes);
    reader.length();
  }
  for (uint64_t left = reader.length(); left > 0 && reader.ok(); --left) {
    reader.string().skip();
    reader.skip(version >= 3 ? 2 * kTimeBytes : kTimeBytes);
    skip_stream_ids(reader);
  }
  // Skips the ids of the consumer group's messages that no longer belong to a consumer.
  if (version >= 5) skip_stream_ids(reader);
}

// Skips the message ids of a stream's producers. Redis detects duplicate messages by these ids.
void skip_stream_producers(StreamReader& reader) {
  skip_lengths(reader, 2);
  for (uint64_t left = reader.length(); left > 0 && reader.ok(); --left) {
    reader.string().skip();
    for (uint64_t ids = reader.length(); ids > 0 && reader.ok(); --ids) {
      reader.string().skip();
      skip_lengths(reader, 2);
    }
  }
  skip_lengths(reader, 2);
}

void skip_stream(StreamReader& reader, int version) {
  for (uint64_t left = reader.length(); left > 0 && reader.ok(); --left) skip_strings(reader, 2);
  skip_lengths(reader, version >= 2 ? 8 : 3);
  for (uint64_t left = reader.length(); left > 0 && reader.ok(); --left) {
    skip_stream_group(reader, version);
  }
  if (version >= 4) skip_stream_producers(reader);
}

void skip_array(StreamReader& reader) {
  enum Tag : uint64_t { kLongText, kInteger, kReal, kShortText };
  uint64_t left = reader.length();
  // The number of elements precedes a flag. If the flag is not 0, the position of the next
  // insertion follows.
  if (reader.length() != 0) reader.length();
  for (; left > 0 && reader.ok(); --left) {
    reader.length();
    switch (reader.length()) {
      case kLongText:
      case kShortText:
        reader.string().skip();
        break;
      case kInteger:
      case kReal:
        reader.skip(sizeof(double));
        break;
      default:
        reader.fail("an array's element has an unknown form");
    }
  }
}

void skip_template(StreamReader& reader, Form form) {
  const uint64_t count = reader.length();
  skip_strings(reader, count);
  if (form == Form::kTemplateArray) return skip_strings(reader, count);
  reader.string().skip();
}

void skip_template_reference(StreamReader& reader, const HashTemplates& templates) {
  const auto count = templates.field_count(reader.length());
  if (!count) return reader.fail("a hash has a template that the snapshot does not define");
  skip_strings(reader, *count);
}

// Skips a value that is encoded as the number of its elements, followed by the elements, which all
// have the same form.
void skip_elements(StreamReader& reader, Form form) {
  for (uint64_t left = reader.length(); left > 0 && reader.ok(); --left) {
    if (form == Form::kContainers || form == Form::kHashWithExpiry) reader.length();
    reader.string().skip();
    switch (form) {
      case Form::kTextScores:
        skip_text_score(reader);
        break;
      case Form::kDoubleScores:
        reader.skip(sizeof(double));
        break;
      case Form::kPairs:
      case Form::kHashWithExpiry:
        reader.string().skip();
        break;
      case Form::kPairsWithExpiry:
        reader.string().skip();
        reader.skip(kTimeBytes);
        break;
      default:
        break;
    }
  }
}

}  // namespace

std::string foreign_type_name(uint8_t type, RdbDialect dialect) {
  const auto found = find_type(type, dialect);
  return found ? std::string(found->name) : fmt::format("type {}", type);
}

bool can_skip_foreign(uint8_t type, RdbDialect dialect) {
  return find_type(type, dialect).value_or(ForeignType{}).form != Form::kUnknown;
}

void HashTemplates::read(StreamReader& reader) {
  // Limit on the number of hash templates. A file with more templates is rejected, because it is
  // probably a denial-of-service attack.
  constexpr size_t kTemplatesMax = size_t{1} << 20;
  const uint64_t id = reader.length();
  const uint64_t count = reader.length();
  skip_strings(reader, count);
  if (!reader.ok()) return;
  if (field_counts_.size() >= kTemplatesMax) return reader.fail("there are too many templates");
  field_counts_[id] = count;
}

std::optional<uint64_t> HashTemplates::field_count(uint64_t id) const {
  const auto found = field_counts_.find(id);
  if (found == field_counts_.end()) return std::nullopt;
  return found->second;
}

void skip_key_meta(StreamReader& reader) {
  for (uint64_t left = reader.length(); left > 0 && reader.ok(); --left) {
    reader.u32();
    ModuleReader(reader).skip_to_end();
  }
}

void skip_foreign_value(StreamReader& reader, uint8_t type, RdbDialect dialect,
                        const HashTemplates& templates) {
  const Form form = find_type(type, dialect).value_or(ForeignType{}).form;
  switch (form) {
    case Form::kUnknown:
      return reader.fail(
          fmt::format("values of type {} ({}) cannot be passed over: delete such keys in the "
                      "server that has written them, and save again",
                      type, foreign_type_name(type, dialect)),
          core::ErrorCode::kUnsupported);
    case Form::kOneString:
      reader.string().skip();
      return;
    case Form::kStream1:
      return skip_stream(reader, 1);
    case Form::kStream2:
      return skip_stream(reader, 2);
    case Form::kStream3:
      return skip_stream(reader, 3);
    case Form::kStream4:
      return skip_stream(reader, 4);
    case Form::kStream5:
      return skip_stream(reader, 5);
    case Form::kArray:
      return skip_array(reader);
    case Form::kTemplate:
    case Form::kTemplateArray:
      return skip_template(reader, form);
    case Form::kTemplateArrayReference:
      return skip_template_reference(reader, templates);
    case Form::kLength:
      reader.length();
      return;
    case Form::kListpackExpiry:
      reader.skip(kTimeBytes);
      reader.string().skip();
      return;
    case Form::kHashWithExpiry:
      // The release candidate of Redis 7.4 stored hashes without the earliest expiry of their
      // fields.
      if (type != kHashReleaseCandidate) reader.skip(kTimeBytes);
      return skip_elements(reader, form);
    default:
      return skip_elements(reader, form);
  }
}

}  // namespace persistence
