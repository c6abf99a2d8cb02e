// SPDX-License-Identifier: MIT
#include "server/tools/build_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/bloom/layouts.h"
#include "core/number.h"
#include "core/plain_number.h"
#include "protocol/arguments.h"

namespace server {
namespace {

// The highest error rate of a built filter. A higher rate is lowered to this one, as in BF.RESERVE.
constexpr double kBuiltErrorRateMax = 0.25;

core::Result<> take_error_rate(std::string_view text, BuildOptions& options) {
  const auto rate = core::parse_double(text);
  if (!rate || !core::bloom::is_rate(*rate)) {
    const std::string hint = core::rate_hint(text);
    return core::Error{fmt::format("--error takes a number between 0 and 1, not '{}'{}{}", text,
                                   hint.empty() ? "" : ": ", hint)};
  }
  options.parameters.error_rate = std::min(*rate, kBuiltErrorRateMax);
  return {};
}

core::Result<> take_capacity(std::string_view text, BuildOptions& options) {
  const auto capacity = core::parse_count(text);
  constexpr auto kMost = static_cast<int64_t>(core::bloom::kMaxLayerCapacity);
  if (!capacity || *capacity < 1 || *capacity > kMost) {
    return core::Error{fmt::format("--capacity takes a number from 1 to {}, not '{}'",
                                   core::bloom::kMaxLayerCapacity, text)};
  }
  options.parameters.capacity = static_cast<uint64_t>(*capacity);
  options.counts_items = false;
  return {};
}

core::Result<> take_layout(std::string_view text, BuildOptions& options) {
  for (const core::bloom::LayoutRow& row : core::bloom::kLayoutRows) {
    if (!protocol::equals_ignore_case(text, row.name)) continue;
    options.parameters.layout = row.id;
    return {};
  }
  return core::Error{
      fmt::format("--layout takes {}, not '{}'", core::bloom::layout_names(", ", " or "), text)};
}

core::Result<> take_native_version(std::string_view text, BuildOptions& options) {
  const auto version = core::parse_count(text);
  constexpr int kLeast = core::bloom::kNativeVersionMin;
  constexpr int kMost = core::bloom::kNativeVersionMax;
  if (!version || *version < kLeast || *version > kMost) {
    return core::Error{
        fmt::format("--native-version takes {} or {}, not '{}'", kLeast, kMost, text)};
  }
  options.native_version = static_cast<int>(*version);
  return {};
}

core::Result<> take_records(std::string_view text, BuildOptions& options) {
  if (text != "lines" && text != "length32") {
    return core::Error{fmt::format("--records takes lines or length32, not '{}'", text)};
  }
  options.format = text == "lines" ? RecordFormat::kLines : RecordFormat::kLength32;
  return {};
}

core::Result<> take_key(std::string_view text, BuildOptions& options) {
  options.key = text;
  return {};
}

struct BuildOption {
  std::string_view name;
  core::Result<> (*take)(std::string_view text, BuildOptions& options);
};
constexpr BuildOption kBuildOptions[] = {
    {"--error", take_error_rate}, {"--capacity", take_capacity},
    {"--layout", take_layout},    {"--key", take_key},
    {"--records", take_records},  {"--native-version", take_native_version},
};

}  // namespace

core::Result<BuildOptions> parse_build_options(std::span<const std::string> arguments) {
  if (arguments.size() < 2 || arguments[1].empty() || arguments[1].starts_with("--")) {
    return core::Error{fmt::format("--build-filter takes a path\n{}", build_usage())};
  }
  BuildOptions options;
  options.path = arguments[1];
  bool has_error_rate = false;
  for (size_t i = 2; i < arguments.size(); i += 2) {
    const std::string& name = arguments[i];
    const auto* const option = std::ranges::find(kBuildOptions, name, &BuildOption::name);
    if (option == std::end(kBuildOptions)) {
      return core::Error{fmt::format("--build-filter does not know '{}'\n{}", name, build_usage())};
    }
    if (i + 1 == arguments.size()) return core::Error{fmt::format("{} takes a value", name)};
    if (auto taken = option->take(arguments[i + 1], options); !taken) return taken.error();
    has_error_rate = has_error_rate || name == "--error";
  }
  if (!has_error_rate) {
    return core::Error{fmt::format("--build-filter needs --error\n{}", build_usage())};
  }
  return options;
}

std::string_view build_usage() {
  return "Usage: bloomery-server --build-filter out.rdb --error e [--capacity n] [--layout l]\n"
         "                       [--native-version 1|2] [--key k] [--records lines|length32]\n"
         "                       < items.txt";
}

}  // namespace server
