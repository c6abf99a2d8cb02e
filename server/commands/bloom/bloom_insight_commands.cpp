// SPDX-License-Identifier: MIT
//
// BF.PLAN predicts the cost of a filter. BF.STATS and BF.DEBUG describe the state of an existing
// filter. BF.PLAN and BF.STATS exist only in Bloomery.
//
// BF.STATS counts bits under the shared lock of the key. If a filter is bigger than kReadBytes,
// BF.STATS reads only a sample of this size, otherwise all bits. For deletable layouts it reads
// only the layout's counters. Lookups run at the same time; adds to the same stripe wait until
// BF.STATS has finished.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "core/bloom/parameters.h"
#include "core/bloom/window.h"
#include "protocol/arguments.h"
#include "server/commands/bloom/bloom_access.h"
#include "server/commands/bloom/bloom_options.h"
#include "server/commands/bloom/filter_figures.h"
#include "server/commands/families.h"
#include "server/commands/pair_writer.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

using core::bloom::FilterParameters;
using core::bloom::Geometry;
using core::bloom::LayerInfo;
using core::bloom::LayoutId;
using core::bloom::ScalableFilter;

// The number of bytes that are read from a large filter. They are half a billion bits, which give
// the fill ratio to four digits, whatever the size of the filter.
constexpr uint64_t kReadBytes = uint64_t{64} << 20;

// A number of items as a fraction of the capacity.
struct Fill {
  std::string_view name;
  double share;
};
// The fill levels for which BF.PLAN predicts the residue: the fraction of items that could not be
// deleted at this level.
constexpr Fill kResidueFills[] = {{"25%", 0.25}, {"50%", 0.5}, {"60%", 0.6}, {"100%", 1}};
// A reservation allocates all pages at once, but only the pages that items have touched are
// resident. So BF.PLAN predicts the resident bytes for several fractions of the capacity.
constexpr Fill kResidentFills[] = {
    {"0.001%", 1e-5}, {"0.01%", 1e-4}, {"0.1%", 1e-3}, {"1%", 0.01}, {"100%", 1}};

void write_planned_residue(protocol::ReplyWriter& reply, LayoutId layout,
                           const core::bloom::LayerPlan& layer) {
  reply.bulk("predicted residue");
  reply.map(std::size(kResidueFills));
  PairWriter pairs(reply);
  for (const Fill& fill : kResidueFills) {
    const double items = fill.share * static_cast<double>(layer.capacity);
    pairs.number(fill.name,
                 core::bloom::predicted_residue(layout, layer.geometry, items).value_or(0));
  }
}

void write_planned_resident(protocol::ReplyWriter& reply, uint64_t array_bytes, double touches) {
  constexpr double kPageBytes = 4096;
  const double pages = std::max(1.0, static_cast<double>(array_bytes) / kPageBytes);
  reply.bulk("resident bytes");
  reply.map(std::size(kResidentFills));
  PairWriter pairs(reply);
  for (const Fill& fill : kResidentFills) {
    // A page stays untouched with probability (1 - 1/pages)^touches.
    const double touched = -std::expm1(fill.share * touches * std::log1p(-1 / pages));
    pairs.integer(fill.name, static_cast<uint64_t>(touched * static_cast<double>(array_bytes)));
  }
}

/* BF.PLAN error_rate capacity [EXPANSION expansion] [NONSCALING] [TIGHTENING ratio]
   [WINDOW length [ITEMS]] [GENERATIONS generations] [REFRESH]
   [LAYOUT layout] [DELETABLE] [REGIONS bits] */
void plan(Context& ctx) {
  const auto planned = parse_plan(ctx.config(), ctx.args);
  if (!planned) return ctx.reply.error(planned.error().message);
  const FilterParameters& parameters = *planned;
  const auto layer = ScalableFilter::plan(parameters);
  if (!layer) return ctx.reply.error(layer.error().message);
  const Geometry& geometry = layer->geometry;
  const bool is_windowed = parameters.window.is_set();
  // For a filter with a window, `layer_count`, `bits` and `bytes` cover all generations that are
  // alive after one full window.
  const uint64_t layer_count = live_generations(parameters);
  const uint64_t bits = geometry.bit_count * layer_count;
  const uint64_t bytes =
      core::bloom::accounted_bytes(parameters.layout, layer_count, (bits + 7) / 8) +
      core::bloom::window_bytes(parameters);
  const uint64_t capacity = is_windowed ? parameters.capacity : layer->capacity;
  const bool is_deletable = layout_row(parameters.layout).clears_bits;
  ctx.reply.map(10 + size_t{is_windowed} + (is_deletable ? 2 : 0));
  PairWriter pairs(ctx.reply);
  pairs.text("layout", core::bloom::layout_name(parameters.layout));
  // The pair "bytes" has the size that BF.INFO will show for the filter.
  pairs.integer("bytes", bytes);
  pairs.integer("bits", bits);
  pairs.integer("hash count", geometry.hash_count);
  pairs.integer("cache lines per lookup", core::bloom::lookup_lines(geometry));
  pairs.number("bits per item", static_cast<double>(bits) / static_cast<double>(capacity));
  pairs.number("error rate of the first layer", layer->error_rate);
  pairs.flag("scaling", parameters.is_scaling());
  if (is_windowed) pairs.integer("generations", layer_count);
  // A snapshot, or the base of the append log, stores the arrays verbatim. The disk needs room for
  // two such files, because the old one still exists while the next one is written.
  pairs.integer("disk bytes", 2 * bytes);
  if (is_deletable) {
    pairs.integer("cell bits", geometry.cell_bits);
    write_planned_residue(ctx.reply, parameters.layout, *layer);
  }
  const auto lines = static_cast<double>(core::bloom::lookup_lines(geometry));
  write_planned_resident(ctx.reply, bits / 8, static_cast<double>(capacity) * lines);
}

// Returns the ratio between the error rates of successive layers. Returns nullopt if these rates
// are not a geometric series, or if the filter does not grow.
std::optional<double> constant_tightening(const FilterParameters& parameters) {
  const double ratio = parameters.is_scaling() ? tightening_ratio_of(parameters) : 0;
  return ratio == 0 ? std::nullopt : std::optional(ratio);
}

void write_layer(protocol::ReplyWriter& reply, const LayerFigures& layer, bool is_deletable) {
  reply.map(is_deletable ? 10 : 8);
  PairWriter pairs(reply);
  pairs.integer("capacity", layer.info.capacity);
  pairs.integer("items", layer.info.item_count);
  pairs.integer("bits", layer.info.geometry.bit_count);
  pairs.integer("hash count", layer.info.geometry.hash_count);
  pairs.integer("cache lines per lookup", core::bloom::lookup_lines(layer.info.geometry));
  pairs.number("error rate", layer.info.error_rate);
  pairs.number("fill ratio", layer.fill_ratio);
  pairs.number("predicted error rate", layer.predicted_error_rate);
  if (!is_deletable) return;
  pairs.integer("cell bits", layer.info.geometry.cell_bits);
  pairs.number("predicted residue", layer.residue);
}

// A generation's start is in milliseconds since 1970, or the number of items added before it.
void write_window(protocol::ReplyWriter& reply, const FilterFigures& figures) {
  const core::bloom::WindowSettings& window = figures.parameters.window;
  reply.bulk("window");
  reply.map(5);
  PairWriter pairs(reply);
  window.counts_items() ? pairs.integer("items", window.length)
                        : pairs.number("seconds", static_cast<double>(window.length) / 1000);
  pairs.integer("generations", window.generations);
  pairs.flag("refresh", window.refreshes);
  pairs.integer("items over capacity", figures.items_over());
  reply.bulk("alive");
  reply.array(figures.generations.size());
  for (const GenerationFigures& generation : figures.generations) {
    reply.map(3);
    pairs.integer("start", static_cast<uint64_t>(generation.start));
    pairs.integer("items", generation.item_count);
    pairs.integer("layers", generation.layer_count);
  }
}

void write_filter(protocol::ReplyWriter& reply, const FilterFigures& figures) {
  const FilterParameters& parameters = figures.parameters;
  const Geometry& newest = figures.layers.back().info.geometry;
  const bool is_estimated = parameters.item_count_is_estimated;
  const bool is_windowed = parameters.window.is_set();
  reply.map(17 + size_t{is_estimated} + size_t{is_windowed} + (figures.is_deletable() ? 2 : 0));
  PairWriter pairs(reply);
  pairs.text("layout", core::bloom::layout_name(parameters.layout));
  pairs.integer("bytes", figures.size_bytes);
  pairs.integer("bits", figures.bit_count());
  pairs.integer("hash count", newest.hash_count);
  pairs.integer("cache lines per lookup", core::bloom::lookup_lines(newest));
  pairs.integer("items", figures.item_count);
  // Only unions of filters have an estimated item count.
  if (is_estimated) pairs.flag("items are estimated", true);
  pairs.integer("capacity", figures.capacity);
  pairs.number("fill ratio", figures.fill_ratio());
  pairs.number("predicted error rate", figures.predicted_error_rate);
  pairs.integer("estimated cardinality",
                static_cast<uint64_t>(std::llround(figures.estimated_cardinality())));
  pairs.number("error rate", parameters.error_rate);
  pairs.number("tightening ratio", constant_tightening(parameters));
  pairs.integer("expansion", parameters.is_scaling() ? std::optional<uint64_t>(parameters.expansion)
                                                     : std::nullopt);
  pairs.integer("items left", figures.items_left);
  pairs.integer("next layer bytes", figures.next_layer_bytes);
  if (figures.is_deletable()) {
    pairs.integer("cell bits", newest.cell_bits);
    pairs.number("predicted residue", figures.residue());
  }
  pairs.integer("reserved capacity", parameters.capacity);
  reply.bulk("layers");
  reply.array(figures.layers.size());
  for (const LayerFigures& layer : figures.layers) {
    write_layer(reply, layer, figures.is_deletable());
  }
  if (is_windowed) write_window(reply, figures);
}

/* BF.STATS key */
void stats(Context& ctx) {
  const KeyRef key = ctx.key(1);
  auto lock = ctx.lock(key);
  const auto found = find_filter(ctx, key);
  if (!found) return;
  if (*found == nullptr) return ctx.reply.error(kFilterNotFound);
  FilterFigures figures = figures_of(**found, kReadBytes);
  lock.unlock();
  figures.compute_residues();
  write_filter(ctx.reply, figures);
}

/* BF.DEBUG key */
void debug(Context& ctx) {
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto found = find_filter(ctx, key);
  if (!found) return;
  if (*found == nullptr) return ctx.reply.error(kFilterNotFound);
  const ScalableFilter& filter = **found;
  const int hash_bits = filter.parameters().hashes_32_bits ? 32 : 64;
  ctx.reply.array(1 + filter.layer_count());
  ctx.reply.bulk(fmt::format("size:{}", filter.item_count()));
  for (size_t i = 0; i < filter.layer_count(); ++i) {
    const LayerInfo layer = filter.layer_info(i);
    ctx.reply.bulk(fmt::format(
        "bytes:{} bits:{} hashes:{} hashwidth:{} capacity:{} size:{} ratio:{:g}",
        layer.geometry.size_bytes(), layer.geometry.bit_count, layer.geometry.hash_count, hash_bits,
        layer.capacity, layer.item_count, layer.error_rate));
  }
}

// Returns the names of the layouts in upper case, because an upper-case word in a command's syntax
// is a literal.
std::string layout_tokens() {
  return protocol::upper_case(core::bloom::layout_names(" | ", " | "));
}

const std::string kPlanSyntax =
    "error_rate:double capacity [EXPANSION expansion] [NONSCALING] [TIGHTENING ratio] [LAYOUT (" +
    layout_tokens() +
    ")] [DELETABLE] [REGIONS bits] [WINDOW length [ITEMS]] [GENERATIONS generations] [REFRESH]";

const Command kBloomInsightRows[] = {
    {.name = "bf.debug",
     .arity = 2,
     .flags = kReadOnly | kFast,
     .keys = one_key(kKeyRo | kKeyAccess),
     .group = "bf",
     .summary = "Shows the layers of a Bloom filter",
     .complexity = "O(N), where N is the number of layers",
     .syntax = "key",
     .handler = debug},
    {.name = "bf.plan",
     .arity = -3,
     .flags = kFast | kLoading | kStale,
     .summary = "Returns the cost of a Bloom filter without creating it",
     .complexity = "O(L) where L is the number of layers",
     .syntax = kPlanSyntax,
     .handler = plan},
    {.name = "bf.stats",
     .arity = 2,
     .flags = kReadOnly,
     .keys = one_key(kKeyRo | kKeyAccess),
     .summary = "Shows how a Bloom filter is filled and how often it errs now, layer by layer; "
                "reads its bits, at most a sample of 64 MiB",
     .complexity = "O(N) where N is the number of bytes that are sampled",
     .syntax = "key",
     .handler = stats},
};

}  // namespace

const CommandFamily kBloomInsightCommands{
    {.categories = kBloom, .group = "bloom-ext", .since = "1.0.0"}, kBloomInsightRows};

}  // namespace server
