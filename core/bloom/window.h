// SPDX-License-Identifier: MIT
//
// Window: when a filter that forgets begins a new generation, and which generations it still has.
//
// A window of length W is cut by a grid of g points: generation i begins at origin + floor(i W/g)
// and ends where the next one begins. Items go to the newest generation and are forgotten W after
// its end, which is the point where generation i+g+1 begins: so an item is remembered for W at
// least, for W and one generation at most, and one generation more than g is enough.
//
//   ordinal:     i-4     i-3     i-2     i-1      i
//           |-------|-------|-------|-------|---x...|       g = 4, x is now
//           '-- goes when i+1 begins        '-- takes items
//
// Positions on the grid are milliseconds since 1970, or items counted since the filter was made.
// A clock that jumps back moves the grid (origin) with it, as if no time had passed; one that jumps
// forward passes over ordinals.
//
// Invariants: ordinals ascend, and none lies more than g below the newest; positions are in [0,
// kPositionMax]; the grid of a window of items begins at 0.
//
// Layers: growth stops when kGrownLayersMax layers are alive, but rotation always succeeds. Each
// generation after the last one that grew has one layer. At most g such generations are alive
// beside it, so a window has at most kGrownLayersMax + g layers.
//
// Thread safety: const members may run beside each other; the others need the window to themselves.
// Source: docs/bloom_math.md, "Windows".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/bloom/parameters.h"

namespace core::bloom {

// The newest generation from now on.
struct WindowTurn {
  uint64_t ordinal = 0;
  int64_t start = 0;
  bool operator==(const WindowTurn&) const = default;
};

class Window {
 public:
  // Milliseconds far behind any clock, items more than any filter sees.
  static constexpr int64_t kPositionMax = int64_t{1} << 52;
  // Layers up to the last generation that grew.
  static constexpr uint32_t kGrownLayersMax = kMaxLayers - 1;

  struct Generation {
    uint64_t ordinal = 0;
    uint32_t layer_count = 0;
    bool operator==(const Generation&) const = default;
  };

  // One generation of one layer. Windows of items begin at 0 whatever `start` is.
  // REQUIRES: valid settings.
  Window(const WindowSettings& settings, int64_t start);
  // From parts that are not trusted, the oldest generation first; nothing when no window has them.
  static std::optional<Window> restore(const WindowSettings& settings, const WindowTurn& newest,
                                       std::vector<Generation> generations);

  const WindowSettings& settings() const { return settings_; }
  // The oldest first.
  std::span<const Generation> generations() const { return generations_; }
  WindowTurn newest() const { return {newest_ordinal(), start_of(newest_ordinal())}; }
  // Where a generation begins.
  int64_t start_of(uint64_t ordinal) const {
    return origin_ + static_cast<int64_t>(ordinal * settings_.length / settings_.generations);
  }
  // Where the next turn is due.
  int64_t next_start() const { return start_of(newest_ordinal() + 1); }
  // Items that a generation of a window of items takes.
  uint64_t newest_quota() const {
    return static_cast<uint64_t>(next_start() - start_of(newest_ordinal()));
  }
  // How many layers, from the oldest on, belong to generations that are over. Windows of items have
  // none: they turn in time.
  size_t layers_over_at(int64_t now_ms) const {
    return now_ms < first_end_ ? 0 : count_layers_over(now_ms);
  }

  // The turn that this position asks for; nothing while the newest generation goes on.
  std::optional<WindowTurn> turn_due(int64_t position) const;
  // Whether it may follow what is there; in a window of items, the next one alone.
  bool allows(const WindowTurn& turn) const;
  // Whether it begins a generation; else it moves the grid only.
  bool is_new(const WindowTurn& turn) const { return turn.ordinal != newest_ordinal(); }
  // Carries out a turn and returns how many layers, from the oldest on, go. An empty newest
  // generation becomes the new one; where it is not empty, a layer is to be added behind it.
  // REQUIRES: allows(turn).
  size_t turn(const WindowTurn& turn, bool is_newest_empty);
  // Whether the newest generation may grow by a layer.
  bool may_grow() const { return layer_count() < kGrownLayersMax; }
  void note_layer() { ++generations_.back().layer_count; }
  size_t layer_count() const;
  // The most layers that a window with these settings may have.
  static constexpr size_t layers_max(const WindowSettings& settings) {
    return size_t{kGrownLayersMax} + settings.generations;
  }

 private:
  // Layers of the generations up to the last one that grew.
  size_t grown_layers() const;
  uint64_t newest_ordinal() const { return generations_.back().ordinal; }
  size_t count_layers_over(int64_t now_ms) const;
  // Where the generation is over.
  int64_t end_of(const Generation& generation) const {
    return start_of(generation.ordinal + settings_.generations + 1);
  }
  void update_first_end();

  WindowSettings settings_;
  int64_t origin_ = 0;
  // Of the oldest generation; never, where items are counted.
  int64_t first_end_ = 0;
  std::vector<Generation> generations_;
};

}  // namespace core::bloom
