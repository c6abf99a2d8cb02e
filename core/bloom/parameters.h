// SPDX-License-Identifier: MIT
//
// FilterParameters: what a filter is asked to be, and the series of error rates its layers get.
//
// Invariants: for the native layout the errors of all layers, however many, sum to at most the
// error rate asked for; layer_error_rate() alone decides them.
// Thread safety: values and pure functions.
// Source: docs/bloom_math.md, "The series of layer errors".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace core::bloom {

// Where an item's bits may fall: a layout of core/bloom/layouts.h, each of which names its number.
enum class LayoutId : uint8_t {};
// The native layout, of filters that do not ask for one.
inline constexpr LayoutId kDefaultLayout{1};
// The layouts of filters that ask for DELETABLE, without and with regions.
inline constexpr LayoutId kDeletableLayout{4};
inline constexpr LayoutId kRegionLayout{5};

// A layout for code that treats all of them alike.
struct LayoutRow {
  LayoutId id{};
  std::string_view name{};  // as in the configuration
  // Another server, or its module, has filters of this layout.
  bool is_foreign = false;
  // Bits may become 0 again. Children that save must not see it: arrays are in private memory.
  bool clears_bits = false;
  // Items hash alike in all filters, so they can be hashed before the filter is known.
  bool has_fixed_hash = false;
  bool takes_seed = false;
  bool takes_tightening = false;
  // Of its own series of error rates; 0 where that is not geometric.
  double own_tightening = 0;
  // Layers keep no smaller one; 0 where memory is the only limit.
  double min_error_rate = 0;
  // A filter of it may forget: its stored form has room for the generations.
  bool takes_window = false;
  // The forms with 32-bit hashes or rounded arrays, and a growth that has no effect.
  bool has_older_forms = false;
  // FilterParameters::region_bits, which is also the cell_bits of all its layers.
  bool takes_region_bits = false;
  // Its files tell that an item count is estimated; such a count may exceed a layer's capacity.
  bool marks_estimates = false;
};

// A filter has six bits for the id of its layout.
inline constexpr size_t kLayoutIdsMax = 64;

// The rows of the list in layouts.h by id; null where no layout has it.
extern const std::array<const LayoutRow*, kLayoutIdsMax> kLayoutRowsById;

// REQUIRES: an id of the list.
inline const LayoutRow& layout_row(LayoutId id) {
  return *kLayoutRowsById[static_cast<size_t>(id)];
}

// "native", "redisbloom" or "valkey-bloom", as in the configuration.
inline std::string_view layout_name(LayoutId id) {
  return layout_row(id).name;
}

// In the order of the list, in which texts name them.
std::span<const LayoutRow> layout_rows();
std::string layout_names(std::string_view separator, std::string_view last_separator);

using Seed = std::array<uint8_t, 32>;

// The seed of every valkey-bloom filter that was not given a random one.
inline constexpr Seed kFixedSeed = {
    0x59, 0x0F, 0xF5, 0x22, 0xEA, 0x78, 0x11, 0xDA, 0xA7, 0x14, 0xD8, 0x09, 0x3B, 0x3E, 0x7B, 0xD9,
    0x1D, 0x89, 0x8A, 0x73, 0x3E, 0x98, 0x88, 0x87, 0x30, 0x7F, 0x97, 0xCD, 0x28, 0x07, 0x33, 0x83};

inline constexpr uint64_t kMaxLayerCapacity = uint64_t{1} << 48;
// A lookup visits every layer; the other layouts end near here because their rates underflow.
inline constexpr uint32_t kMaxNativeLayers = 1024;
// Of any filter, here or in a file: with a tightening ratio near one rates never underflow.
inline constexpr uint32_t kMaxLayers = 4096;
// When a filter forgets its items.
enum class WindowUnit : uint8_t { kNone, kMilliseconds, kItems };

struct WindowSettings {
  uint64_t length = 0;
  WindowUnit unit = WindowUnit::kNone;
  // That a window is cut into; one more is alive.
  uint8_t generations = 0;
  // An item that is added again is remembered anew.
  bool refreshes = false;

  static constexpr uint8_t kGenerationsMax = 64;
  static constexpr uint8_t kUsualGenerations = 4;
  static constexpr uint64_t kSecondsMax = std::numeric_limits<uint32_t>::max();
  static constexpr uint64_t kItemsMax = uint64_t{1} << 48;

  bool is_set() const { return unit != WindowUnit::kNone; }
  bool counts_items() const { return unit == WindowUnit::kItems; }
  // Lengths and generations in range, and no generation of nothing.
  bool is_valid() const;
  bool operator==(const WindowSettings&) const = default;
};

// A time before all others, at which nothing has been forgotten yet.
inline constexpr int64_t kNoTime = std::numeric_limits<int64_t>::min();

// Longer regions save no memory worth it, and let next to nothing go.
inline constexpr unsigned kMaxRegionBits = 255;
// A quarter more memory; of a filter filled to the half, 2 items in 1,000 cannot be deleted.
inline constexpr unsigned kDefaultRegionBits = 4;

struct FilterParameters {
  double error_rate = 0.01;
  uint64_t capacity = 100;
  // Capacity of a new layer over that of the last one; 0 makes a filter that never grows.
  uint32_t expansion = 2;
  // Error rate of layer i+1 over layer i; 0 asks for the layout's own series.
  double tightening_ratio = 0;
  LayoutId layout = kDefaultLayout;
  // Of the layouts that take one.
  Seed seed = kFixedSeed;
  // The two older forms of the redisbloom layout, met only in imported filters.
  bool hashes_32_bits = false;
  bool rounds_to_power_of_two = false;
  // Of the layouts that take it; 0 asks for the default.
  uint8_t region_bits = 0;
  // The growth that RedisBloom keeps of a filter that never grows; it has no effect.
  uint16_t idle_growth = kUsualIdleGrowth;
  // Of a union: items that several filters held were counted by their bits.
  bool item_count_is_estimated = false;
  // Of filters that forget: error rate and capacity are those of a whole window.
  WindowSettings window{};

  static constexpr uint16_t kUsualIdleGrowth = 2;
  bool is_scaling() const { return expansion != 0; }
  bool operator==(const FilterParameters&) const = default;
};

// What inserting an item did. Only deletable layouts may have no room.
enum class Insertion : uint8_t { kAdded, kPresent, kNoRoom };

// What deleting an item did. kStays: it is there, but taking it out would touch other items.
enum class Removal : uint8_t { kGone, kAbsent, kStays };

// The shape of a layer's bit array.
struct Geometry {
  // Also the modulus of the layouts that take one.
  uint64_t bit_count = 0;
  uint16_t hash_count = 0;
  // Independent cache lines the hash_count bits are spread over; 0 where the layout has no lines.
  uint8_t lines_per_lookup = 0;
  // redisbloom only: bit_count is a power of two because it was rounded up to one.
  bool is_rounded = false;
  // Bits of the cells that a deletable layout's array consists of: what a cell is, the layout says.
  uint16_t cell_bits = 0;

  uint64_t size_bytes() const { return (bit_count + 63) / 64 * 8; }
  bool operator==(const Geometry&) const = default;
};

// A layer's bits for reading, with the shape that says how.
struct ArrayView {
  const uint64_t* words = nullptr;
  Geometry geometry;
};

// What a layer's array says of itself, where items can be deleted: the count of items does not tell
// what deletions have left behind.
struct ArrayFigures {
  double fill_ratio = 0;
  // As many as would have filled it so.
  double items = 0;
  double error_rate = 0;
  // Share of the items that deleting would leave in place.
  double residue = 0;
};
// Nothing of layouts that only add. Takes up to some milliseconds.
std::optional<ArrayFigures> array_figures(LayoutId layout, const ArrayView& array,
                                          uint64_t item_count);
// The first of these figures alone; takes no time.
std::optional<double> array_fill_ratio(LayoutId layout, const ArrayView& array,
                                       uint64_t item_count);
// Share of `item_count` items that deleting would leave in place, had none been deleted before.
std::optional<double> predicted_residue(LayoutId layout, const Geometry& geometry,
                                        double item_count);

// Arrays below this are likely in a core's own cache while their filter is in use: the older layers
// of a filter that has grown. Fetching for them would cost as much as looking.
inline constexpr uint64_t kCachedBytes = 256 << 10;
// Arrays that a group of items is looked up in at once.
inline constexpr size_t kGroupArrays = 16;

// Cache lines that a lookup of an item touches, where no two probes share a line by chance.
uint64_t lookup_lines(const Geometry& geometry);

// Different items added, estimated from the share of bits set alone (Swamidass, Baldi 2007).
double estimated_items(const Geometry& geometry, double fill_ratio);

// Another machine's logarithm may differ in its last digit, and with it what follows from a rate.
inline constexpr double kRateTolerance = 1e-9;

// A layer before memory is found for it.
struct LayerPlan {
  uint64_t capacity = 0;
  double error_rate = 0;
  Geometry geometry;

  static std::optional<LayerPlan> of(uint64_t capacity, double error_rate,
                                     const std::optional<Geometry>& geometry) {
    if (!geometry) return std::nullopt;
    return LayerPlan{capacity, error_rate, *geometry};
  }
};

// What each generation of a filter with a window is, a small filter of its own: the errors of all
// that are alive sum to the error rate asked for.
FilterParameters generation_parameters(const FilterParameters& parameters);

// Generations that are alive once a window has passed; 1 without a window.
inline uint64_t live_generations(const FilterParameters& parameters) {
  return parameters.window.is_set() ? uint64_t{parameters.window.generations} + 1 : 1;
}

// The same with what the layout never looks at set to its default.
FilterParameters without_unused(FilterParameters parameters);

// The ratio of the filter's series of error rates; 0 where that is not geometric.
double tightening_ratio_of(const FilterParameters& parameters);

// Error rate of layer `index` of a filter, or of a generation of a filter with a window; 0 when it
// underflows.
double layer_error_rate(const FilterParameters& parameters, uint32_t index);

// Whether it is a share that an error rate or a tightening ratio may be.
inline bool is_rate(double rate) {
  return rate > 0 && rate < 1;
}

// The first layer, or that of each generation; nothing when no array of an addressable size can
// keep the promise.
std::optional<LayerPlan> plan_first_layer(const FilterParameters& parameters);

// Layer `index`, of a generation where there are some, which follows `last`; nothing when capacity
// or error rate leave their range.
std::optional<LayerPlan> plan_next_layer(const FilterParameters& parameters, uint32_t index,
                                         const LayerPlan& last);

// Bytes of the bit array a new filter starts with; the largest uint64_t when it cannot exist.
uint64_t planned_bytes(const FilterParameters& parameters);

enum class ScalingLimit : uint8_t { kNone, kMemory, kErrorRate };

struct ScalingForecast {
  // Sum over the layers that can exist; at least the capacity wanted when limit is kNone.
  uint64_t capacity = 0;
  ScalingLimit limit = ScalingLimit::kNone;
};

// Grows a filter on paper until its capacity reaches `capacity_wanted` or a limit stops it.
// Bytes are counted as accounted_bytes() does.
ScalingForecast forecast_scaling(const FilterParameters& parameters, uint64_t capacity_wanted,
                                 uint64_t limit_bytes);

// What a filter of `layer_count` layers over arrays of `bits_bytes` in all is charged. The foreign
// layouts are charged by their modules' formulas, a little above what they take here, so that
// BF.INFO's SIZE and memory limits mean the same as there.
inline constexpr uint64_t kFilterBytes = 48;
inline constexpr uint64_t kChainBytes = 152;
inline constexpr uint64_t kLayerBytes = 48;
uint64_t accounted_bytes(LayoutId layout, uint64_t layer_count, uint64_t bits_bytes);
// What a window adds to that.
inline constexpr uint64_t kWindowBytes = 56;
inline constexpr uint64_t kGenerationBytes = 16;
inline uint64_t window_bytes(const FilterParameters& parameters) {
  if (!parameters.window.is_set()) return 0;
  return kWindowBytes + kGenerationBytes * live_generations(parameters);
}

}  // namespace core::bloom
