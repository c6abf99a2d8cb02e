// SPDX-License-Identifier: MIT
//
// Window: the generations of a filter that forgets old items, and the time at which a new
// generation begins.
//
// A grid of g points divides a window of length W. Generation i begins at origin + floor(i W/g) and
// ends where the next one begins. Items are added to the newest generation. The items of generation
// i are forgotten when generation i+g+1 begins, which is W after the end of generation i. So an
// item is remembered for at least W and at most W plus one generation, and g+1 generations suffice.
//
//   ordinal:     i-4     i-3     i-2     i-1      i
//           |-------|-------|-------|-------|---x...|       g = 4, x is now
//           '-- dropped when i+1 begins     '-- accepts items
//
// Positions on the grid are milliseconds since 1970, or items counted since the filter was created.
// If the clock jumps back, the grid (origin) moves back with it, as if no time had passed. If it
// jumps forward, ordinals are skipped.
//
// Invariants: the ordinals of the generations ascend, and any two of them differ by at most g.
// Positions are in [0, kPositionMax]. If positions are counts of items, origin is 0.
//
// Layers: growth stops when kGrownLayersMax layers are alive, but rotation always succeeds. Each
// generation after the last one that grew has one layer. At most g of these later generations are
// alive, so a window has at most kGrownLayersMax + g layers.
//
// Thread safety: const members may run in parallel; the others need exclusive access to the window.
// Source: docs/bloom_math.md, "Windows".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/bloom/parameters.h"

namespace core::bloom {

// A rotation: ordinal and start of the newest generation after the rotation.
struct WindowRotation {
  uint64_t ordinal = 0;
  int64_t start = 0;
  bool operator==(const WindowRotation&) const = default;
};

class Window {
 public:
  // Largest position. As a time in milliseconds it is more than 100,000 years. As a count, it is
  // more items than any filter gets.
  static constexpr int64_t kPositionMax = int64_t{1} << 52;
  // A filter does not grow while its window has this number of layers. Only growth gives a
  // generation several layers. So in a valid window, a generation with several layers and all older
  // generations together have at most this number of layers.
  static constexpr uint32_t kGrownLayersMax = kMaxLayers - 1;

  struct Generation {
    uint64_t ordinal = 0;
    uint32_t layer_count = 0;
    bool operator==(const Generation&) const = default;
  };

  // Creates a window with one generation of one layer. A window whose length is a number of items
  // begins at 0 and ignores `start`. REQUIRES: valid settings.
  Window(const WindowSettings& settings, int64_t start);
  // Restores a window from untrusted parts, the oldest generation first; nullopt if they are
  // invalid.
  static std::optional<Window> restore(const WindowSettings& settings, const WindowRotation& newest,
                                       std::vector<Generation> generations);

  const WindowSettings& settings() const { return settings_; }
  // Returns the generations, the oldest first.
  std::span<const Generation> generations() const { return generations_; }
  WindowRotation newest() const { return {newest_ordinal(), start_of(newest_ordinal())}; }
  // Position at which a generation begins.
  int64_t start_of(uint64_t ordinal) const {
    return origin_ + static_cast<int64_t>(ordinal * settings_.length / settings_.generations);
  }
  // Position at which the next rotation is due.
  int64_t next_start() const { return start_of(newest_ordinal() + 1); }
  // Number of items that the newest generation of a window of items accepts.
  uint64_t newest_quota() const {
    return static_cast<uint64_t>(next_start() - start_of(newest_ordinal()));
  }
  // Number of layers of the expired generations, which are the oldest ones. Always 0 if the window
  // counts items, because the add that makes a generation expire also removes it.
  size_t layers_over_at(int64_t now_ms) const {
    return now_ms < first_end_ ? 0 : count_layers_over(now_ms);
  }

  // The rotation due at this position; nullopt while the newest generation lasts.
  std::optional<WindowRotation> rotation_due(int64_t position) const;
  // Returns whether the rotation is valid now. Its ordinal must be at least that of the newest
  // generation. If the window counts items, the ordinal must be exactly one higher than that.
  bool allows(const WindowRotation& rotation) const;
  // True if the rotation begins a generation. Otherwise it only shifts the times at which
  // generations begin.
  bool is_new(const WindowRotation& rotation) const { return rotation.ordinal != newest_ordinal(); }
  // Number of layers of the generations that a rotation to this ordinal drops.
  size_t layers_dropped_by(const WindowRotation& rotation) const;
  // Carries out a rotation and returns the number of oldest layers that the caller must drop. A
  // rotation that begins a generation reuses the newest generation if that is empty. If the newest
  // generation has items, the caller must append a layer for the new generation. REQUIRES:
  // allows(rotation).
  size_t rotate(const WindowRotation& rotation, bool is_newest_empty);
  // True if the newest generation may grow by a layer.
  bool may_grow() const { return layer_count() < kGrownLayersMax; }
  void record_layer() { ++generations_.back().layer_count; }
  size_t layer_count() const;
  // Maximum number of layers of a window with these settings.
  static constexpr size_t layers_max(const WindowSettings& settings) {
    return size_t{kGrownLayersMax} + settings.generations;
  }

 private:
  // Finds the newest generation with several layers. Returns the number of layers of this
  // generation and of all older ones together. Returns 0 if every generation has one layer.
  size_t grown_layers() const;
  // Lowest ordinal of the generations that remain after a rotation.
  uint64_t oldest_ordinal_after(const WindowRotation& rotation) const {
    return rotation.ordinal - std::min<uint64_t>(rotation.ordinal, settings_.generations);
  }
  uint64_t newest_ordinal() const { return generations_.back().ordinal; }
  size_t count_layers_over(int64_t now_ms) const;
  // Position at which the generation expires.
  int64_t end_of(const Generation& generation) const {
    return start_of(generation.ordinal + settings_.generations + 1);
  }
  void update_first_end();

  WindowSettings settings_;
  int64_t origin_ = 0;
  // Position at which the oldest generation expires; the maximum value if the window counts items.
  int64_t first_end_ = 0;
  std::vector<Generation> generations_;
};

}  // namespace core::bloom
