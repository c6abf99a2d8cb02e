// SPDX-License-Identifier: MIT
#include "server/base/config/special_values.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "core/number.h"
#include "core/plain_number.h"
#include "persistence/aof/aof_format.h"
#include "persistence/aof/aof_manifest.h"
#include "persistence/files/lock_file.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/base/config/event_class.h"
#include "server/base/config/host.h"
#include "server/base/config/value.h"
#include "server/base/config/words.h"

namespace server {
namespace {

constexpr size_t kMaxBindAddresses = 16;
constexpr int64_t kMinHz = 1;
constexpr int64_t kMaxHz = 500;
// The highest error rate that RedisBloom allows.
constexpr double kMaxErrorRate = 0.25;

// A letter of notify-keyspace-events, and its event class. The rows have the order in which Redis
// lists the letters.
struct EventLetter {
  char letter;
  uint32_t event_class;
};
constexpr EventLetter kEventLetters[] = {
    {'g', kGenericEvents}, {'$', kStringEvents},    {'l', kListEvents},    {'s', kSetEvents},
    {'h', kHashEvents},    {'z', kSortedSetEvents}, {'x', kExpiredEvents}, {'e', kEvictedEvents},
    {'t', kStreamEvents},  {'d', kModuleEvents},    {'n', kNewEvents},     {'K', kEventsByKey},
    {'E', kEventsByEvent}, {'m', kMissEvents},
};
constexpr uint32_t kNotInAllEvents = kNewEvents | kEventsByKey | kEventsByEvent | kMissEvents;

// Returns the event classes that a letter of notify-keyspace-events selects; 0 for an unknown
// letter.
uint32_t classes_of_letter(char letter) {
  uint32_t all = 0;
  for (const EventLetter& row : kEventLetters) {
    if (row.letter == letter) return row.event_class;
    all |= row.event_class;
  }
  return letter == 'A' ? all & ~kNotInAllEvents : 0;
}

std::string letters_of_classes(uint32_t classes) {
  const uint32_t all = classes_of_letter('A');
  const bool has_all = (classes & all) == all;
  std::string letters = has_all ? "A" : "";
  for (const EventLetter& row : kEventLetters) {
    const bool is_said = has_all && (row.event_class & all) != 0;
    if ((classes & row.event_class) != 0 && !is_said) letters += row.letter;
  }
  return letters;
}

bool looks_like_address(const std::string& word) {
  return !word.empty() &&
         std::ranges::all_of(word, [](char c) { return c == '*' || is_host_character(c); });
}

// Returns whether the server gives this name to a file of its own in the data directory. A start
// removes all files with such names, except the lock file and that of a cluster's node.
bool is_own_file_name(const std::string& name) {
  constexpr std::string_view kClusterNodeFile = "cluster.json";
  return name == persistence::kLockFileName || name == kClusterNodeFile ||
         persistence::is_aof_rewrite_name(name) || persistence::is_temporary_snapshot_name(name);
}

}  // namespace

Parsed<Value> parse_bind(const Option&, Words words, const std::string&) {
  if (words.size() == 1 && words[0].empty()) return Value{};
  if (words.size() > kMaxBindAddresses) return Refusal{std::string(kTooManyAddresses)};
  if (!std::all_of(words.begin(), words.end(), looks_like_address)) {
    return Refusal{std::string(kAddressesFail)};
  }
  return Value{join_words(words), 0};
}

Parsed<Value> parse_replicaof(const Option&, Words words, const std::string&) {
  if (words.size() == 1 && words[0].empty()) return Value{};
  if (words.size() != 2) return Refusal{std::string(kWrongArgumentCount)};
  if (lower_case(words[0]) == "no" && lower_case(words[1]) == "one") return Value{};
  const auto port = parse_port(words[1]);
  if (!port) return Refusal{"Invalid master port"};
  if (!is_host(words[0])) return Refusal{"Invalid master host"};
  return Value{fmt::format("{} {}", words[0], *port), 0};
}

Parsed<Value> parse_keyspace_events(const Option&, Words words, const std::string&) {
  uint32_t classes = 0;
  for (const char letter : words[0]) {
    const uint32_t named = classes_of_letter(letter);
    if (named == 0) {
      return Refusal{std::string(kInvalidEventClass)};
    }
    classes |= named;
  }
  return Value{letters_of_classes(classes), classes};
}

std::vector<std::string> write_replicaof(const Option& option, const std::string& text) {
  if (text.empty()) return {};
  std::vector<std::string> words = split_at_spaces(text);
  for (std::string& word : words) word = quote_word_if_needed(word);
  return {fmt::format("{} {}", option.name, join_words(words))};
}

Parsed<Value> parse_announced_host(const Option&, Words words, const std::string&) {
  if (!words[0].empty() && !is_host(words[0])) {
    return Refusal{"argument must be a host name or an address"};
  }
  return Value{words[0], 0};
}

Parsed<Value> parse_cluster_name(const Option&, Words words, const std::string&) {
  constexpr size_t kLengthMax = 64;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (words[0].empty() || words[0].size() > kLengthMax || !std::ranges::all_of(words[0], fits)) {
    return Refusal{"argument must be 1 to 64 letters, digits, '-', '_' or '.'"};
  }
  return Value{words[0], 0};
}

Parsed<Value> parse_node_id(const Option&, Words words, const std::string&) {
  constexpr size_t kLength = 40;
  const auto fits = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const bool is_id = words[0].size() == kLength && std::ranges::all_of(words[0], fits);
  if (!words[0].empty() && !is_id) {
    return Refusal{"argument must be 40 lower-case hexadecimal digits"};
  }
  return Value{words[0], 0};
}

Parsed<Value> parse_directory(const Option&, Words words, const std::string&) {
  const std::string& path = words[0];
  const auto because = [](int error_number) {
    return Refusal{std::generic_category().message(error_number)};
  };
  if (path.find('\0') != std::string::npos) return because(ENOENT);
  const std::unique_ptr<char, decltype(&std::free)> absolute(::realpath(path.c_str(), nullptr),
                                                             &std::free);
  if (absolute == nullptr) return because(errno);
  struct stat status {};
  if (::stat(absolute.get(), &status) != 0) return because(errno);
  if (!S_ISDIR(status.st_mode)) return because(ENOTDIR);
  return Value{absolute.get(), 0};
}

Parsed<Value> parse_hz(const Option& option, Words words, const std::string&) {
  auto value = parse_ranged_integer(option, words[0]);
  if (!value) return value;
  const int64_t hz = std::clamp(value->scalar, kMinHz, kMaxHz);
  return Value{std::to_string(hz), hz};
}

Parsed<Value> parse_memory_or_percent(const Option&, Words words, const std::string&) {
  constexpr int64_t kPercentMax = 100;
  const std::string_view text = words[0];
  const Refusal too_much{std::string(kPercentTooBig)};
  if (text.ends_with('%')) {
    const auto percent = core::parse_int64(text.substr(0, text.size() - 1));
    if (percent && *percent > kPercentMax) return too_much;
    if (percent && *percent > 0) return Value{fmt::format("{}%", *percent), -*percent};
    if (percent && *percent == 0) return Value{"0", 0};
    return Refusal{std::string(kNoMemoryOrPercent)};
  }
  const MemoryText memory = parse_memory(text);
  // The error text says that a percentage exceeds 100. Redis replies with the same text if a number
  // of bytes exceeds 2^63-1.
  if (memory.overflowed) return too_much;
  if (!memory.bytes) return Refusal{std::string(kNoMemoryOrPercent)};
  return Value{std::to_string(*memory.bytes), *memory.bytes};
}

Parsed<Value> parse_shutdown_words(const Option& option, Words words, const std::string&) {
  int64_t bits = 0;
  for (const std::string& word : words) {
    const auto found = std::ranges::find(option.choices, lower_case(word));
    if (found == option.choices.end()) {
      return unknown_choice(fmt::format("{}", fmt::join(option.choices, ", ")));
    }
    const auto index = found - option.choices.begin();
    if (index > 0) bits |= int64_t{1} << (index - 1);
  }
  constexpr int64_t kContradiction = 3;
  if ((bits & kContradiction) == kContradiction) {
    return Refusal{std::string(kSaveAndNoSave)};
  }
  std::string text;
  for (size_t i = 1; i < option.choices.size(); ++i) {
    if ((bits >> (i - 1) & 1) == 0) continue;
    text += fmt::format("{}{}", text.empty() ? "" : " ", option.choices[i]);
  }
  return Value{text.empty() ? std::string(option.choices[0]) : text, bits};
}

Parsed<Value> parse_oom_score_values(const Option&, Words words, const std::string&) {
  constexpr size_t kCount = 3;
  constexpr int64_t kLimit = 2000;
  if (words.size() != kCount) return Refusal{std::string(kWrongArgumentCount)};
  std::string text;
  for (const std::string& word : words) {
    const auto number = core::parse_int64(word);
    if (!number || *number < -kLimit || *number > kLimit) {
      return Refusal{std::string(kInvalidOomScores)};
    }
    text += fmt::format("{}{}", text.empty() ? "" : " ", *number);
  }
  return Value{std::move(text), 0};
}

Parsed<Value> parse_percentiles(const Option& option, Words words, const std::string&) {
  if (words.size() == 1 && words[0].empty()) return Value{};
  std::string text;
  for (const std::string& word : words) {
    const auto number = parse_float(word);
    if (!number) return Refusal{fmt::format("Invalid {} parameters", option.name)};
    if (*number < 0 || *number > 100) {
      return Refusal{fmt::format("{} parameters should sit between [0.0,100.0]", option.name)};
    }
    text += fmt::format("{}{}", text.empty() ? "" : " ", *number);
  }
  return Value{std::move(text), 0};
}

Parsed<Value> parse_file_name(const Option& option, Words words, const std::string&) {
  const std::string& name = words[0];
  // As in Redis, a backslash also counts as a part of a path.
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of("/\\") != std::string::npos) {
    return Refusal{fmt::format("{} can't be a path, just a filename", option.name)};
  }
  // Control characters would break the lines of the append log's manifest, and a zero byte would
  // end the name.
  if (std::ranges::any_of(name, [](unsigned char c) { return c < ' ' || c == 0x7f; })) {
    return Refusal{fmt::format("{} can't hold control characters", option.name)};
  }
  if (!persistence::is_manifest_name(name)) {
    return Refusal{fmt::format("{} is too long for the name of a file", option.name)};
  }
  if (is_own_file_name(name)) {
    return Refusal{fmt::format(
        "{} can't be a name that the server gives to files of its own: choose another name",
        option.name)};
  }
  return Value{name, 0};
}

Parsed<Value> parse_save(const Option&, Words words, const std::string& current) {
  if (words.size() == 1 && words[0].empty()) return Value{};
  if (words.size() % 2 != 0) return Refusal{std::string(kInvalidSavePoints)};
  for (size_t i = 0; i < words.size(); i += 2) {
    const auto seconds = core::parse_int64(words[i]);
    const auto changes = core::parse_int64(words[i + 1]);
    if (!seconds || !changes || *seconds < 1 || *changes < 0) {
      return Refusal{std::string(kInvalidSavePoints)};
    }
  }
  const char* separator = current.empty() ? "" : " ";
  return Value{fmt::format("{}{}{}", current, separator, fmt::join(words, " ")), 0};
}

std::vector<std::string> write_save(const Option& option, const std::string& text) {
  if (text.empty()) return {fmt::format("{} \"\"", option.name)};
  std::vector<std::string> lines;
  const auto words = split_at_spaces(text);
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    lines.push_back(fmt::format("{} {} {}", option.name, words[i], words[i + 1]));
  }
  return lines;
}

Parsed<Value> parse_bloom_error_rate(const Option& option, Words words,
                                     const std::string& current) {
  const auto ratio = parse_bloom_ratio(option, words, current);
  if (!ratio) return ratio;
  return float_value(std::min(std::bit_cast<double>(ratio->scalar), kMaxErrorRate));
}

Parsed<Value> parse_bloom_ratio(const Option& option, Words words, const std::string&) {
  const auto number = parse_float(words[0]);
  if (!number) {
    const std::string hint = core::rate_hint(words[0]);
    const std::string_view before = hint.empty() ? "" : ": ";
    return Refusal{fmt::format("Invalid value for `{}`{}{}", option.name, before, hint)};
  }
  if (*number <= 0 || *number >= 1) {
    return Refusal{
        fmt::format("Value for `{}` must be in the range ({:f}, {:f})", option.name, 0.0, 1.0)};
  }
  return float_value(*number);
}

Parsed<Value> parse_bloom_integer(const Option& option, Words words, const std::string&) {
  const auto number = core::parse_count(words[0]);
  if (!number) {
    const std::string hint = core::count_hint(words[0]);
    return Refusal{std::string(kNoInteger) + (hint.empty() ? "" : ": " + hint)};
  }
  if (*number < option.min || *number > option.max) {
    return Refusal{fmt::format("Value for `{}` must be in the range [{}, {}]", option.name,
                               option.min, option.max)};
  }
  return Value{std::to_string(*number), *number};
}

}  // namespace server
