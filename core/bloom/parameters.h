// SPDX-License-Identifier: MIT
//
// FilterParameters: the requested properties of a filter, and the error rates of its layers.
//
// Invariants: for the native layout the error rates of all layers, however many, sum to at most the
// requested error rate. layer_error_rate() alone computes these rates.
// Thread safety: pure functions; concurrent reads of a value are safe.
// Source: docs/bloom_math.md, "The series of layer errors".
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace core::bloom {

// Identifies a layout. A layout determines where the bits of an item lie; core/bloom/layouts.h
// lists all layouts. Ids 1, 4, 5 and 6 are defined here. redisbloom has 2 and valkey-bloom 3, in
// their headers. The next free id is 7.
enum class LayoutId : uint8_t {};
// Version 1 and 2 of the native layout. Filters without deletion have it by default.
inline constexpr LayoutId kNativeLayout{1};
inline constexpr LayoutId kLaneLayout{6};
// The layouts of DELETABLE filters: a cuckoo filter (FingerprintLayout), and a Bloom filter with
// regions (RegionLayout).
inline constexpr LayoutId kFingerprintLayout{4};
inline constexpr LayoutId kRegionLayout{5};

// Properties of a layout, for code that handles all layouts alike.
struct LayoutRow {
  LayoutId id{};
  // Name of the layout in the configuration.
  std::string_view name{};
  // True if the layout comes from another program: RedisBloom or valkey-bloom.
  bool is_foreign = false;
  // True if bits may be cleared. A child process that saves a snapshot must not see that bits are
  // cleared after the fork, so the arrays are in private memory.
  bool clears_bits = false;
  // True if all filters of the layout hash an item alike, so that items can be hashed before the
  // filter is known.
  bool has_fixed_hash = false;
  bool takes_seed = false;
  bool takes_tightening = false;
  // Default ratio of a layer's error rate to that of the layer before it; 0 if by default this
  // ratio differs from layer to layer.
  double own_tightening = 0;
  // Lowest error rate of a filter's first layer; 0 if only memory limits it.
  double min_error_rate = 0;
  // True if filters of the layout may have a window, because their stored form has room for the
  // window's generations.
  bool takes_window = false;
  // True if the layout has older forms. These have 32-bit hashes, arrays rounded up to a power of
  // two, or a stored growth factor in filters that cannot grow.
  bool has_older_forms = false;
  // True if FilterParameters::region_bits applies to the layout. The cell_bits of all layers then
  // equal region_bits.
  bool takes_region_bits = false;
  // True if the layout's stored form can mark an item count as estimated. Such a count may exceed a
  // layer's capacity.
  bool marks_estimates = false;
  // True if the layout's stored form has no item counts of older layers, because they are full.
  bool fills_older_layers = false;
};

// A filter has six bits for the id of its layout.
inline constexpr size_t kLayoutIdsMax = 64;

// Rows of the list in layouts.h, indexed by id; null for unused ids.
extern const std::array<const LayoutRow*, kLayoutIdsMax> kLayoutRowsById;

// Returns the row of a layout. REQUIRES: the list in layouts.h contains the id.
inline const LayoutRow& layout_row(LayoutId id) {
  return *kLayoutRowsById[static_cast<size_t>(id)];
}

// Name of the layout in the configuration, for example "valkey-bloom".
inline std::string_view layout_name(LayoutId id) {
  return layout_row(id).name;
}

// Returns the rows in the order of the list, which is also their order in messages.
std::span<const LayoutRow> layout_rows();
std::string layout_names(std::string_view separator, std::string_view last_separator);

// Error texts for parameters that are out of range.
inline constexpr std::string_view kErrorRateRange =
    "ERR error rate must be in the range (0.000000, 1.000000)";
inline constexpr std::string_view kCapacityIsZero = "ERR (capacity should be larger than 0)";
inline constexpr std::string_view kTighteningRange = "ERR (0 < tightening ratio range < 1)";

using Seed = std::array<uint8_t, 32>;

// Seed of every valkey-bloom filter without a random seed.
inline constexpr Seed kFixedSeed = {
    0x59, 0x0F, 0xF5, 0x22, 0xEA, 0x78, 0x11, 0xDA, 0xA7, 0x14, 0xD8, 0x09, 0x3B, 0x3E, 0x7B, 0xD9,
    0x1D, 0x89, 0x8A, 0x73, 0x3E, 0x98, 0x88, 0x87, 0x30, 0x7F, 0x97, 0xCD, 0x28, 0x07, 0x33, 0x83};

inline constexpr uint64_t kMaxLayerCapacity = uint64_t{1} << 48;
// Maximum item count, and maximum capacity, of a layer in a file or of a filter. Replies and files
// of other servers have signed counts.
inline constexpr uint64_t kMaxItemCount = std::numeric_limits<int64_t>::max();
// Returns the sum of two item counts or two capacities, limited to kMaxItemCount.
constexpr uint64_t add_counts(uint64_t one, uint64_t other) {
  const uint64_t limited = std::min(one, kMaxItemCount);
  return limited + std::min(other, kMaxItemCount - limited);
}
// Maximum number of layers of a native filter. It bounds the time of a lookup, which visits every
// layer. In the other layouts error rates underflow after about as many layers.
inline constexpr uint32_t kMaxNativeLayers = 1024;
// Maximum number of layers of any filter, in memory or in a file. With a tightening ratio near one,
// error rates hardly decrease, so their underflow would not stop the growth.
inline constexpr uint32_t kMaxLayers = 4096;
// The unit in which the length of a window is measured. A filter forgets an item when the window
// has passed.
enum class WindowUnit : uint8_t { kNone, kMilliseconds, kItems };

struct WindowSettings {
  uint64_t length = 0;
  WindowUnit unit = WindowUnit::kNone;
  // Number of generations into which the window is divided. One older generation is also kept,
  // because only whole generations are forgotten.
  uint8_t generations = 0;
  // True if adding an item again extends its stay. The filter then forgets the item one window
  // after the latest add, not after the first.
  bool refreshes = false;

  static constexpr uint8_t kGenerationsMax = 64;
  static constexpr uint8_t kUsualGenerations = 4;
  static constexpr uint64_t kSecondsMax = std::numeric_limits<uint32_t>::max();
  static constexpr uint64_t kItemsMax = uint64_t{1} << 48;

  bool is_set() const { return unit != WindowUnit::kNone; }
  bool counts_items() const { return unit == WindowUnit::kItems; }
  // True if length and generations are in range and no generation has length zero.
  bool is_valid() const;
  bool operator==(const WindowSettings&) const = default;
};

// The lowest time. A lookup at this time searches all generations of a window that still exist.
inline constexpr int64_t kNoTime = std::numeric_limits<int64_t>::min();

// Maximum number of bits per region. Longer regions save little memory, and almost no item can be
// deleted from them.
inline constexpr unsigned kMaxRegionBits = 255;
// Number of bits per region unless requested otherwise. With this size, the collision flags of the
// regions add a quarter to the memory of the bits. In a half full filter, 2 of 1,000 items cannot
// be deleted.
inline constexpr unsigned kDefaultRegionBits = 4;

struct FilterParameters {
  static constexpr uint32_t kUsualIdleGrowth = 2;

  double error_rate = 0.01;
  uint64_t capacity = 100;
  // Capacity of a new layer divided by that of the layer before; 0 for a filter that never grows.
  uint32_t expansion = 2;
  // The growth factor that RedisBloom stores for a filter that never grows. It has no effect.
  uint32_t idle_growth = kUsualIdleGrowth;
  // Error rate of layer i+1 divided by that of layer i; 0 selects the layout's own series.
  double tightening_ratio = 0;
  LayoutId layout = kNativeLayout;
  // Seed of the hash; used by layouts with a seed.
  Seed seed = kFixedSeed;
  // The two older forms of the redisbloom layout, found only in imported filters.
  bool hashes_32_bits = false;
  bool rounds_to_power_of_two = false;
  // Bits per region; used by layouts with regions. 0 selects the default.
  uint8_t region_bits = 0;
  // True for a union whose item count was estimated from the bits.
  bool item_count_is_estimated = false;
  // Window of a filter that drops its oldest items. The error rate and the capacity of such a
  // filter apply to the whole window.
  WindowSettings window{};

  bool is_scaling() const { return expansion != 0; }
  bool operator==(const FilterParameters&) const = default;
};

// Versions of the native layout. Version 2 reads one line where version 1 reads two, and hashes an
// item in a fraction of the time.
inline constexpr int kNativeVersionMin = 1;
inline constexpr int kNativeVersionMax = 2;
// Returns the native layout for a new filter, in the given version. Version 1 is also returned for
// error rates so low, or capacities so large, that 64 bits of hash would not suffice.
LayoutId native_layout(int version, const FilterParameters& parameters);

// Outcome of an insertion. kNoRoom: only for deletable layouts.
enum class Insertion : uint8_t { kAdded, kPresent, kNoRoom };

// Outcome of a deletion. kStays: the item is present, but its removal would affect other items.
enum class Removal : uint8_t { kGone, kAbsent, kStays };

// How much of a layer's array is there. kPartly: some chunks of the filter may not be loaded yet.
enum class Loaded : uint8_t { kWhole, kPartly };

// The shape of a layer's bit array.
struct Geometry {
  // Number of bits. Some layouts compute bit indices modulo this number.
  uint64_t bit_count = 0;
  uint16_t hash_count = 0;
  // Number of independent cache lines over which the hash_count bits are spread; 0 if the layout
  // has no lines.
  uint8_t lines_per_lookup = 0;
  // redisbloom only: bit_count was rounded up to a power of two.
  bool is_rounded = false;
  // Bits per cell of a deletable layout's array. The layout defines the meaning of a cell.
  uint16_t cell_bits = 0;

  uint64_t size_bytes() const { return (bit_count + 63) / 64 * 8; }
  bool operator==(const Geometry&) const = default;
};

// Read-only view of a layer's bits, with their geometry.
struct ArrayView {
  const uint64_t* words = nullptr;
  Geometry geometry;
};

// Statistics computed from a layer's array if items can be deleted. Deletions may leave bits of
// deleted items in the array, so the layer's item count would be too low for these statistics.
struct ArrayFigures {
  double fill_ratio = 0;
  // Number of items that would give the fill ratio `fill_ratio`.
  double items = 0;
  double error_rate = 0;
  // Share of the regions whose flag is set. Used by residue_of().
  double flag_share = 0;
};
// Computes the statistics of a layer's array. Returns nullopt for layouts without deletion.
std::optional<ArrayFigures> array_figures(LayoutId layout, const ArrayView& array,
                                          uint64_t item_count);
// Returns the share of a layer's items that cannot be deleted, because their deletion would affect
// other items. `flag_share` is that of ArrayFigures. Takes up to a few milliseconds, so the caller
// should hold no lock. Returns 0 for layouts without deletion.
double residue_of(LayoutId layout, const Geometry& geometry, double flag_share);
// Returns only the fill ratio of ArrayFigures, in constant time.
std::optional<double> array_fill_ratio(LayoutId layout, const ArrayView& array,
                                       uint64_t item_count);
// Returns the predicted share of `item_count` items that cannot be deleted, because their deletion
// would affect other items. The prediction assumes that no item was deleted before.
std::optional<double> predicted_residue(LayoutId layout, const Geometry& geometry,
                                        double item_count);

// Arrays below this size are not prefetched. While a filter is used, its small arrays (the older
// layers of a filter that has grown) are probably in the core's own cache. A prefetch would cost as
// much as the lookup itself.
inline constexpr uint64_t kCachedBytes = 256 << 10;
// Maximum number of arrays in which a group of items is looked up at once.
inline constexpr size_t kGroupArrays = 16;

// Cache lines that a lookup touches, if no two probes share a line by chance.
uint64_t lookup_lines(const Geometry& geometry);

// Estimates how many different items were added. Uses only `fill_ratio`, the share of set bits
// (Swamidass, Baldi 2007).
double estimated_items(const Geometry& geometry, double fill_ratio);

// Relative tolerance for values that another machine computed. The logarithm function of that
// machine may differ in the last digit, and so may the sizes computed with it.
inline constexpr double kRateTolerance = 1e-9;
inline bool is_close(double a, double b) {
  return std::fabs(a - b) <= kRateTolerance * b;
}

// A planned layer, before its memory is allocated.
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

// Parameters of each generation of a filter with a window. The error rates of all live generations
// sum to the requested error rate.
FilterParameters generation_parameters(const FilterParameters& parameters);

// Number of live generations after a whole window has passed; 1 without a window.
inline uint64_t live_generations(const FilterParameters& parameters) {
  return parameters.window.is_set() ? uint64_t{parameters.window.generations} + 1 : 1;
}

// Returns a copy of the parameters in which the fields that the layout ignores have their defaults.
FilterParameters without_unused(FilterParameters parameters);

// Returns the tightening ratio: the error rate of a layer divided by that of the layer before.
// Returns 0 if the layout has no constant ratio.
double tightening_ratio_of(const FilterParameters& parameters);

// Returns the error rate of layer `index` of the filter. If the filter has a window, `index` is
// the layer's index in its generation. Returns 0 if the rate underflows.
double layer_error_rate(const FilterParameters& parameters, uint32_t index);

// True if `rate` is valid as an error rate or a tightening ratio.
inline bool is_rate(double rate) {
  return rate > 0 && rate < 1;
}

// Plans the first layer, or the first layer of each generation. Returns nullopt if no array of an
// addressable size keeps the error rate.
std::optional<LayerPlan> plan_first_layer(const FilterParameters& parameters);

// Plans the layer that follows `last`. `index` is the number of the new layer in the filter, or in
// its generation if there is a window. Returns nullopt if the filter cannot grow: `expansion` is 0,
// the maximum number of layers is reached, or the capacity or error rate is out of range.
std::optional<LayerPlan> plan_next_layer(const FilterParameters& parameters, uint32_t index,
                                         const LayerPlan& last);

// Returns the size in bytes of the bit array of a new filter; the largest uint64_t if the filter
// cannot exist.
uint64_t planned_bytes(const FilterParameters& parameters);

enum class ScalingLimit : uint8_t { kNone, kMemory, kErrorRate, kLayers };

struct ScalingForecast {
  // Sum of the capacities of all layers that the forecast includes. If the filter may grow and
  // `limit` is kNone, the sum is at least the `capacity_wanted` of forecast_scaling().
  uint64_t capacity = 0;
  ScalingLimit limit = ScalingLimit::kNone;
};

struct ScalingLimits {
  uint64_t bytes = std::numeric_limits<uint64_t>::max();  // as counted by accounted_bytes()
  uint64_t layers = std::numeric_limits<uint64_t>::max();
};

// Computes, without allocation, the layers of a filter until its capacity reaches `capacity_wanted`
// or a limit is reached.
ScalingForecast forecast_scaling(const FilterParameters& parameters, uint64_t capacity_wanted,
                                 const ScalingLimits& limits);

// accounted_bytes() returns the accounted memory of a filter of `layer_count` layers with
// `bits_bytes` of arrays in total. For foreign layouts it uses the formulas of their modules, which
// give slightly more than the filters take here. So BF.INFO's SIZE and memory limits have the same
// meaning as with those modules.
inline constexpr uint64_t kFilterBytes = 48;
inline constexpr uint64_t kChainBytes = 152;
inline constexpr uint64_t kLayerBytes = 48;
uint64_t accounted_bytes(LayoutId layout, uint64_t layer_count, uint64_t bits_bytes);
// Additional accounted memory of a filter with a window, and of each of its generations.
inline constexpr uint64_t kWindowBytes = 56;
inline constexpr uint64_t kGenerationBytes = 16;
inline uint64_t window_bytes(const FilterParameters& parameters) {
  if (!parameters.window.is_set()) return 0;
  return kWindowBytes + kGenerationBytes * live_generations(parameters);
}

}  // namespace core::bloom
