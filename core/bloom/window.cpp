// SPDX-License-Identifier: MIT
#include "core/bloom/window.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace core::bloom {
namespace {

int64_t clamped(int64_t position) {
  return std::clamp<int64_t>(position, 0, Window::kPositionMax);
}

// Maximum ordinal of a generation. Up to this ordinal, positions stay in range, and the product of
// an ordinal and the window's length does not overflow.
uint64_t ordinal_max(const WindowSettings& settings) {
  // Without jumps of the clock, the window reaches kPositionMax at a quarter of this maximum. When
  // the clock jumps back, the start times of generations move back, but their ordinals do not
  // decrease. So the maximum leaves room for higher ordinals.
  return (4 * static_cast<uint64_t>(Window::kPositionMax) / settings.length + 1) *
         settings.generations;
}

}  // namespace

bool WindowSettings::is_valid() const {
  if (generations < 1 || generations > kGenerationsMax) return false;
  if (unit == WindowUnit::kMilliseconds) return length >= 1000 && length <= kSecondsMax * 1000;
  return unit == WindowUnit::kItems && length >= generations && length <= kItemsMax;
}

Window::Window(const WindowSettings& settings, int64_t start)
    : settings_(settings),
      origin_(settings.counts_items() ? 0 : clamped(start)),
      generations_{{.ordinal = 0, .layer_count = 1}} {
  assert(settings.is_valid());
  update_first_end();
}

std::optional<Window> Window::restore(const WindowSettings& settings, const WindowRotation& newest,
                                      std::vector<Generation> generations) {
  if (!settings.is_valid() || generations.empty()) return std::nullopt;
  if (generations.back().ordinal != newest.ordinal || newest.ordinal > ordinal_max(settings)) {
    return std::nullopt;
  }
  for (size_t i = 0; i < generations.size(); ++i) {
    const auto& [ordinal, layer_count] = generations[i];
    if (layer_count == 0 || ordinal > newest.ordinal) return std::nullopt;
    if (newest.ordinal - ordinal > settings.generations) return std::nullopt;
    if (i > 0 && ordinal <= generations[i - 1].ordinal) return std::nullopt;
  }
  Window window(settings, 0);
  window.generations_ = std::move(generations);
  if (window.grown_layers() > kGrownLayersMax) return std::nullopt;
  if (newest.start < 0 || newest.start > kPositionMax) return std::nullopt;
  const int64_t origin = newest.start - window.start_of(newest.ordinal);
  if (settings.counts_items() && origin != 0) return std::nullopt;
  window.origin_ = origin;
  window.update_first_end();
  return window;
}

std::optional<WindowRotation> Window::rotation_due(int64_t position) const {
  position = clamped(position);
  const WindowRotation last = newest();
  if (position < last.start) return WindowRotation{last.ordinal, position};
  if (position < next_start()) return std::nullopt;
  // Computes the ordinal of the last generation that begins at or before `position`, which is a
  // time or a number of items.
  const auto since_origin = static_cast<uint64_t>(position - origin_);
  const uint64_t ordinal = ((since_origin + 1) * settings_.generations - 1) / settings_.length;
  return WindowRotation{ordinal, start_of(ordinal)};
}

bool Window::allows(const WindowRotation& rotation) const {
  if (rotation.ordinal < newest_ordinal() || rotation.ordinal > ordinal_max(settings_))
    return false;
  if (settings_.counts_items()) {
    return rotation.ordinal == newest_ordinal() + 1 && rotation.start == start_of(rotation.ordinal);
  }
  return rotation.start >= 0 && rotation.start <= kPositionMax;
}

size_t Window::rotate(const WindowRotation& rotation, bool is_newest_empty) {
  origin_ += rotation.start - start_of(rotation.ordinal);
  if (is_new(rotation)) {
    if (is_newest_empty) {
      generations_.back().ordinal = rotation.ordinal;
    } else {
      generations_.push_back({.ordinal = rotation.ordinal, .layer_count = 1});
    }
  }
  const size_t layers_gone = layers_dropped_by(rotation);
  std::erase_if(generations_, [oldest = oldest_ordinal_after(rotation)](const Generation& each) {
    return each.ordinal < oldest;
  });
  update_first_end();
  return layers_gone;
}

size_t Window::layers_dropped_by(const WindowRotation& rotation) const {
  size_t layers = 0;
  for (const Generation& generation : generations_) {
    if (generation.ordinal < oldest_ordinal_after(rotation)) layers += generation.layer_count;
  }
  return layers;
}

size_t Window::layer_count() const {
  size_t layers = 0;
  for (const Generation& generation : generations_) layers += generation.layer_count;
  return layers;
}

size_t Window::grown_layers() const {
  size_t layers = layer_count();
  for (auto last = generations_.rbegin(); last != generations_.rend(); ++last) {
    if (last->layer_count > 1) break;
    --layers;
  }
  return layers;
}

size_t Window::count_layers_over(int64_t now_ms) const {
  size_t layers = 0;
  for (const Generation& generation : generations_) {
    if (end_of(generation) > now_ms) break;
    layers += generation.layer_count;
  }
  return layers;
}

void Window::update_first_end() {
  first_end_ =
      settings_.counts_items() ? std::numeric_limits<int64_t>::max() : end_of(generations_.front());
}

}  // namespace core::bloom
