// SPDX-License-Identifier: MIT
#include "persistence/filters/window_codec.h"

#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/bloom/window.h"

namespace persistence {
namespace {

using core::bloom::FilterParameters;
using core::bloom::Window;
using core::bloom::WindowRotation;
using core::bloom::WindowSettings;
using core::bloom::WindowUnit;

constexpr std::string_view kDamagedWindow = "ERR damaged filter window";

// Flags in the first number of an encoded window.
constexpr uint64_t kCountsItems = 1;
constexpr uint64_t kRefreshes = 2;

WindowSettings settings_of(uint64_t kind, uint64_t length, uint64_t generations) {
  WindowSettings settings;
  if (kind > (kCountsItems | kRefreshes) || generations > WindowSettings::kGenerationsMax) {
    return settings;
  }
  settings.unit = (kind & kCountsItems) != 0 ? WindowUnit::kItems : WindowUnit::kMilliseconds;
  settings.length = length;
  settings.generations = static_cast<uint8_t>(generations);
  settings.refreshes = (kind & kRefreshes) != 0;
  return settings;
}

std::optional<Window> read_window(const std::function<uint64_t()>& next,
                                  const WindowSettings& settings, uint64_t layer_count) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  const uint64_t ordinal = next();
  const uint64_t start = next();
  const uint64_t generation_count = next();
  if (start > kMost || generation_count > uint64_t{WindowSettings::kGenerationsMax} + 1) {
    return std::nullopt;
  }
  std::vector<Window::Generation> generations;
  uint64_t layers_left = layer_count;
  for (uint64_t i = 0; i < generation_count; ++i) {
    const uint64_t age = next();
    const uint64_t layers = next();
    if (age > ordinal || layers > layers_left) return std::nullopt;
    layers_left -= layers;
    generations.push_back({ordinal - age, static_cast<uint32_t>(layers)});
  }
  if (layers_left != 0) return std::nullopt;
  return Window::restore(settings, {ordinal, static_cast<int64_t>(start)}, std::move(generations));
}

}  // namespace

std::vector<uint64_t> encode_window(const core::bloom::ScalableFilter& filter) {
  const Window& window = *filter.window();
  const WindowSettings& settings = window.settings();
  const WindowRotation newest = window.newest();
  const uint64_t kind =
      (settings.counts_items() ? kCountsItems : 0) | (settings.refreshes ? kRefreshes : 0);
  std::vector<uint64_t> numbers{kind,
                                filter.parameters().capacity,
                                settings.length,
                                settings.generations,
                                newest.ordinal,
                                static_cast<uint64_t>(newest.start),
                                window.generations().size()};
  for (const auto& [ordinal, layer_count] : window.generations()) {
    numbers.push_back(newest.ordinal - ordinal);
    numbers.push_back(layer_count);
  }
  return numbers;
}

void decode_window(const std::function<uint64_t()>& next, uint64_t layer_count,
                   FilterBuilder& builder) {
  FilterParameters& parameters = builder.parameters;
  const uint64_t kind = next();
  parameters.capacity = next();
  const uint64_t length = next();
  parameters.window = settings_of(kind, length, next());
  const bool is_possible = parameters.window.is_valid() &&
                           layout_row(parameters.layout).takes_window &&
                           parameters.capacity <= core::bloom::kMaxLayerCapacity &&
                           layer_count <= Window::layers_max(parameters.window);
  if (!is_possible) return builder.fail(kDamagedWindow);
  auto window = read_window(next, parameters.window, layer_count);
  if (!window) return builder.fail(kDamagedWindow);
  builder.window = std::make_unique<const Window>(std::move(*window));
}

}  // namespace persistence
