// SPDX-License-Identifier: MIT
#include "persistence/rdb/foreign_values.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>

namespace persistence {
namespace {

enum class Form : uint8_t {
  kUnknown,
  kOneString,
  kStrings,          // a count and as many strings
  kPairs,            // a count and twice as many
  kTextScores,       // a count, each a string and a number as text
  kDoubleScores,     // a count, each a string and a double
  kContainers,       // a count, each a length and a string
  kPairsWithExpiry,  // a count, each two strings and 8 bytes
  kHashWithExpiry,   // 8 bytes, a count, each a length and two strings
  kListpackExpiry,   // 8 bytes and a string
  kStream1,
  kStream2,
  kStream3,
};

struct ForeignType {
  std::string_view name;
  Form form = Form::kUnknown;
};

// By type id.
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
    {"stream"},
    {"stream"},
    {"array or template"},
    {"array or template"},
    {"array or template"},
    {"array or template"},
    {"array or template"},
    {"array or template"},
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

// Numbers stored as text: their size, or one of these in its place.
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
    for (uint64_t ids = reader.length(); ids > 0 && reader.ok(); --ids) {
      reader.skip(kStreamIdBytes);
    }
  }
}

void skip_stream(StreamReader& reader, int version) {
  for (uint64_t left = reader.length(); left > 0 && reader.ok(); --left) skip_strings(reader, 2);
  skip_lengths(reader, version >= 2 ? 8 : 3);
  for (uint64_t left = reader.length(); left > 0 && reader.ok(); --left) {
    skip_stream_group(reader, version);
  }
}

// Forms that are a count of equal elements.
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

void skip_foreign_value(StreamReader& reader, uint8_t type, RdbDialect dialect) {
  const Form form = find_type(type, dialect).value_or(ForeignType{}).form;
  switch (form) {
    case Form::kUnknown:
      return reader.fail(fmt::format("values of type {} ({}) cannot be passed over", type,
                                     foreign_type_name(type, dialect)));
    case Form::kOneString:
      reader.string().skip();
      return;
    case Form::kStream1:
      return skip_stream(reader, 1);
    case Form::kStream2:
      return skip_stream(reader, 2);
    case Form::kStream3:
      return skip_stream(reader, 3);
    case Form::kListpackExpiry:
      reader.skip(kTimeBytes);
      reader.string().skip();
      return;
    case Form::kHashWithExpiry:
      // The release candidate had no earliest expiry before the fields.
      if (type != kHashReleaseCandidate) reader.skip(kTimeBytes);
      return skip_elements(reader, form);
    default:
      return skip_elements(reader, form);
  }
}

}  // namespace persistence
