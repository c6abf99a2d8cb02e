// SPDX-License-Identifier: MIT
#include "server/tools/option_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "server/base/config/buffer_limits.h"
#include "server/base/config/option_table.h"
#include "server/base/config/special_values.h"
#include "server/base/config/value.h"

namespace server {
namespace {

// The descriptions of values that an option's own parser accepts. If a description is empty, the
// page shows the minimum and maximum from the option's table row.
constexpr std::pair<ValueParser, std::string_view> kParsers[] = {
    {parse_bind, "at most 16 addresses"},
    {parse_directory, "a directory that exists"},
    {parse_hz, "1 to 500; others become the nearest of these"},
    {parse_memory_or_percent, "bytes, or 0% to 100% of maxmemory"},
    {parse_percentiles, "numbers from 0 to 100"},
    {parse_file_name, "a name without slashes"},
    {parse_save, "pairs of seconds and changes"},
    {parse_shutdown_words, "`default`, or some of `save`, `nosave`, `now`, `force`"},
    {parse_replicaof, "host and port, or `no one`"},
    {parse_announced_host, "a host name or an address"},
    {parse_cluster_name, "1 to 64 letters, digits, `-`, `_` or `.`"},
    {parse_node_id, "40 lower-case hexadecimal digits"},
    {parse_keyspace_events, "letters of classes"},
    {parse_bloom_error_rate, "greater than 0, less than 1"},
    {parse_bloom_ratio, "greater than 0, less than 1"},
    {parse_bloom_integer, ""},
    {parse_buffer_limits, "class, hard limit, soft limit, seconds; several times"},
};

bool is_row(const Option& option, OptionId id) {
  return option.name == option_row(id).name;
}

std::string number_words(const Option& option, int64_t number) {
  if (option.kind == OptionKind::kMemory) return format_memory(number);
  if (option.kind == OptionKind::kOctal) return fmt::format("{:o}", number);
  return std::to_string(number);
}

std::string numbers_words(const Option& option) {
  if (option.max == kInt64Max) return fmt::format("{} or more", number_words(option, option.min));
  return fmt::format("{} to {}", number_words(option, option.min),
                     number_words(option, option.max));
}

}  // namespace

std::string type_words(const Option& option) {
  // The words are in the order of OptionKind.
  constexpr const char* kWords[] = {"yes or no", "integer", "memory", "octal number",
                                    "number",    "choice",  "text",   "list"};
  return kWords[static_cast<size_t>(option.kind)];
}

std::string default_words(const Option& option) {
  if (is_row(option, OptionId::kDir)) return "where the server is started";
  if (is_row(option, OptionId::kIoThreads)) return "number of cores, at most 8";
  if (option.default_text.empty()) return "empty";
  if (option.kind != OptionKind::kMemory) return fmt::format("`{}`", option.default_text);
  const auto bytes = parse_memory(option.default_text).bytes;
  return fmt::format("`{}`", format_memory(bytes.value_or(0)));
}

std::string range_words(const Option& option) {
  for (const auto& [parser, words] : kParsers) {
    if (parser == option.parser && !words.empty()) return std::string(words);
  }
  switch (option.kind) {
    case OptionKind::kInteger:
    case OptionKind::kMemory:
    case OptionKind::kOctal:
      return numbers_words(option);
    case OptionKind::kEnum:
      return fmt::format("`{}`", fmt::join(option.choices, "`, `"));
    default:
      // An option without effect that has its own parser accepts only its default.
      return option.inert && option.parser != nullptr ? "the default" : "";
  }
}

std::string mutability_words(const Option& option) {
  if (option.mutability == Mutability::kImmutable) return "no";
  return option.mutability == Mutability::kProtected ? "if `enable-protected-configs` allows"
                                                     : "yes";
}

}  // namespace server
