// SPDX-License-Identifier: MIT
#include "server/base/config/buffer_limits.h"

#include <fmt/format.h>

#include <cassert>

#include "core/number.h"
#include "server/base/config/value.h"
#include "server/base/config/words.h"

namespace server {
namespace {

constexpr std::array<std::string_view, kClientClassCount> kShownNames = {"normal", "slave",
                                                                         "pubsub"};
constexpr std::array<std::string_view, kClientClassCount> kWrittenNames = {"normal", "replica",
                                                                           "pubsub"};
constexpr size_t kWordsPerClass = 4;

std::optional<size_t> class_index(const std::string& word) {
  const std::string name = lower_case(word);
  for (size_t i = 0; i < kClientClassCount; ++i) {
    if (name == kShownNames[i] || name == kWrittenNames[i]) return i;
  }
  return std::nullopt;
}

// Parses the limits of one class. REQUIRES: four words, of which the first names a class.
std::optional<BufferLimit> parse_limit(Words words) {
  const auto hard = parse_memory(words[1]).bytes;
  const auto soft = parse_memory(words[2]).bytes;
  const auto seconds = core::parse_int64(words[3]);
  if (!hard || !soft || !seconds || *seconds < 0) return std::nullopt;
  return BufferLimit{*hard, *soft, *seconds};
}

std::string canonical_text(const BufferLimits& limits) {
  std::string text;
  for (size_t i = 0; i < kClientClassCount; ++i) {
    text += fmt::format("{}{} {} {} {}", i == 0 ? "" : " ", kShownNames[i], limits[i].hard_bytes,
                        limits[i].soft_bytes, limits[i].soft_seconds);
  }
  return text;
}

}  // namespace

BufferLimits buffer_limits_of(const std::string& text) {
  BufferLimits limits;
  const auto words = split_at_spaces(text);
  assert(words.size() == kWordsPerClass * kClientClassCount);
  for (size_t i = 0; i < kClientClassCount; ++i) {
    const auto limit = parse_limit(Words(words).subspan(i * kWordsPerClass, kWordsPerClass));
    assert(limit.has_value());
    limits[i] = *limit;
  }
  return limits;
}

Parsed<Value> parse_buffer_limits(const Option&, Words words, const std::string& current) {
  // CONFIG SET with an empty text changes no class, as in Redis.
  if (words.size() == 1 && words[0].empty()) return Value{current, 0};
  if (words.size() % kWordsPerClass != 0) {
    return Refusal{std::string(kNoBufferLimit)};
  }
  BufferLimits limits;
  if (!current.empty()) limits = buffer_limits_of(current);
  for (; !words.empty(); words = words.subspan(kWordsPerClass)) {
    const auto index = class_index(words[0]);
    if (!index) return Refusal{std::string(kNoClientClass)};
    const auto limit = parse_limit(words.first(kWordsPerClass));
    if (!limit) {
      return Refusal{std::string(kInvalidBufferLimit)};
    }
    limits[*index] = *limit;
  }
  return Value{canonical_text(limits), 0};
}

std::vector<std::string> write_buffer_limits(const Option& option, const std::string& text) {
  const BufferLimits limits = buffer_limits_of(text);
  std::vector<std::string> lines;
  for (size_t i = 0; i < kClientClassCount; ++i) {
    lines.push_back(fmt::format("{} {} {} {} {}", option.name, kWrittenNames[i],
                                format_memory(limits[i].hard_bytes),
                                format_memory(limits[i].soft_bytes), limits[i].soft_seconds));
  }
  return lines;
}

}  // namespace server
