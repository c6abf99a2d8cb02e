// SPDX-License-Identifier: MIT
#include "persistence/rdb/foreign_values.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>

#include "persistence/bytes/module_value.h"

namespace persistence {
namespace {

// The name of a type and the form of its values. A form lists the parts of a value in order:
//   s      a string
//   l      a length, which is also the form of other numbers
//   t      a number as text
//   1 2 3  so many words of eight bytes, such as a time or the two words of a stream's message id
//   *(…)   a count n, then n times the parts in the brackets
//
// The form is empty if this server does not know the encoding. Two forms, kArrayForm and
// kReferenceForm, do not list the parts, because a value's own bytes decide which parts follow.
struct ForeignType {
  std::string_view name;
  std::string_view form = {};
};
constexpr std::string_view kArrayForm = "array";
constexpr std::string_view kReferenceForm = "template's id";

// A stream consists of its entries, its counters and its consumer groups. A group consists of its
// name, its counters, its pending messages and its consumers. From version 4 on, the message ids of
// producers follow, by which Redis detects duplicate messages. From version 5 on, a group ends with
// the messages that no longer belong to a consumer.
constexpr std::string_view kStream1 = "*(ss)lll*(sll*(3l)*(s1*(2)))";
constexpr std::string_view kStream2 = "*(ss)llllllll*(slll*(3l)*(s1*(2)))";
constexpr std::string_view kStream3 = "*(ss)llllllll*(slll*(3l)*(s2*(2)))";
constexpr std::string_view kStream4 = "*(ss)llllllll*(slll*(3l)*(s2*(2)))ll*(s*(sll))ll";
constexpr std::string_view kStream5 = "*(ss)llllllll*(slll*(3l)*(s2*(2))*(2))ll*(s*(sll))ll";

// The foreign types of Redis, indexed by type id.
constexpr std::array<ForeignType, 34> kRedisTypes = {{
    {"string"},
    {"list", "*(s)"},
    {"set", "*(s)"},
    {"zset", "*(st)"},
    {"hash", "*(ss)"},
    {"zset", "*(s1)"},
    {"module of a release candidate"},
    {"module"},
    {},
    {"hash", "s"},
    {"list", "s"},
    {"set", "s"},
    {"zset", "s"},
    {"hash", "s"},
    {"list", "*(s)"},
    {"stream", kStream1},
    {"hash", "s"},
    {"zset", "s"},
    {"list", "*(ls)"},
    {"stream", kStream2},
    {"set", "s"},
    {"stream", kStream3},
    // The release candidate of Redis 7.4 stored hashes without the earliest expiry of their fields.
    {"hash", "*(lss)"},
    {"hash", "s"},
    {"hash", "1*(lss)"},
    {"hash", "1s"},
    {"stream", kStream4},
    {"stream", kStream5},
    {"array", kArrayForm},
    {"hash", "*(s)s"},  // a template: the names of the fields, then their values
    {"hash", "s"},
    {"hash", "*(ss)"},
    {"hash", kReferenceForm},
    {"gcra", "l"},
}};
constexpr uint8_t kFirstDivergingType = 22;
constexpr std::array<ForeignType, 2> kValkeyTypes = {{{"hash", "*(ss1)"}, {"hash"}}};

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

// Returns the parts in the brackets at the beginning of `form`.
std::string_view bracketed(std::string_view form) {
  size_t end = 0;
  for (int depth = 0; depth > 0 || end == 0; ++end) {
    if (form[end] == '(') ++depth;
    if (form[end] == ')') --depth;
  }
  return form.substr(1, end - 2);
}

void skip_form(StreamReader& reader, std::string_view form) {
  while (!form.empty() && reader.ok()) {
    const char part = form.front();
    form.remove_prefix(1);
    if (part == 's') {
      reader.string().skip();
    } else if (part == 'l') {
      reader.length();
    } else if (part == 't') {
      skip_text_score(reader);
    } else if (part == '*') {
      const std::string_view element = bracketed(form);
      form.remove_prefix(element.size() + 2);
      for (uint64_t left = reader.length(); left > 0 && reader.ok(); --left) {
        skip_form(reader, element);
      }
    } else {
      reader.skip(static_cast<uint64_t>(part - '0') * sizeof(uint64_t));
    }
  }
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

void skip_template_reference(StreamReader& reader, const HashTemplates& templates) {
  const auto count = templates.field_count(reader.length());
  if (!count) return reader.fail("a hash has a template that the snapshot does not define");
  skip_strings(reader, *count);
}

}  // namespace

std::string foreign_type_name(uint8_t type, RdbDialect dialect) {
  const auto found = find_type(type, dialect);
  return found ? std::string(found->name) : fmt::format("type {}", type);
}

bool can_skip_foreign(uint8_t type, RdbDialect dialect) {
  return !find_type(type, dialect).value_or(ForeignType{}).form.empty();
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
  const std::string_view form = find_type(type, dialect).value_or(ForeignType{}).form;
  if (form.empty()) {
    return reader.fail(
        fmt::format("values of type {} ({}) cannot be passed over: delete such keys in the "
                    "server that has written them, and save again",
                    type, foreign_type_name(type, dialect)),
        core::ErrorCode::kUnsupported);
  }
  if (form == kArrayForm) return skip_array(reader);
  if (form == kReferenceForm) return skip_template_reference(reader, templates);
  skip_form(reader, form);
}

}  // namespace persistence
