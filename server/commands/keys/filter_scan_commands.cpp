// SPDX-License-Identifier: MIT
//
// BF.SCAN: lists filters and their state, a page at a time.
//
// BF.SCAN visits keys in the same way as SCAN. At most kScannedBytes of each filter are read, under
// the shared lock of the filter's stripe.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "server/commands/bloom/filter_figures.h"
#include "server/commands/families.h"
#include "server/commands/keys/scan_arguments.h"
#include "server/commands/pair_writer.h"
#include "server/dispatch/context.h"
#include "server/dispatch/own_keys.h"

namespace server {
namespace {

// The number of bytes of a filter that are read. Half a million bits give a fill ratio with an
// error of about a thousandth.
constexpr uint64_t kScannedBytes = uint64_t{64} << 10;

struct FilterLine {
  std::string key;
  FilterFigures figures;
  size_t layers = 0;
  double fill_ratio = 0;
  std::optional<int64_t> expires_at_ms;
};

FilterLine line_of(const Entry& entry) {
  const core::bloom::ScalableFilter& filter = entry.filter();
  FilterLine line{.key = std::string(entry.key()),
                  .figures = summary_of(filter),
                  .layers = filter.layer_count(),
                  .fill_ratio = fill_ratio_of(filter, kScannedBytes),
                  .expires_at_ms = std::nullopt};
  if (entry.has_expiry()) line.expires_at_ms = entry.expires_at_ms();
  return line;
}

std::string_view kind_of(const core::bloom::FilterParameters& parameters) {
  if (parameters.window.is_set()) return "windowed";
  return core::bloom::layout_row(parameters.layout).clears_bits ? "deletable" : "plain";
}

// Writes the fields of one filter, with the labels of BF.STATS.
void write_line(protocol::ReplyWriter& reply, const FilterLine& line, int64_t now_ms) {
  const FilterFigures& figures = line.figures;
  const core::bloom::FilterParameters& parameters = figures.parameters;
  const core::bloom::WindowSettings& window = parameters.window;
  reply.map(14 + size_t{window.is_set()});
  PairWriter pairs(reply);
  pairs.text("key", line.key);
  pairs.text("layout", core::bloom::layout_name(parameters.layout));
  pairs.integer("items", figures.item_count);
  pairs.integer("capacity", figures.capacity);
  pairs.number("fill ratio", line.fill_ratio);
  pairs.number("predicted error rate", figures.predicted_error_rate);
  pairs.integer("bytes", figures.size_bytes);
  pairs.integer("layers", line.layers);
  pairs.text("kind", kind_of(parameters));
  pairs.number("error rate", parameters.error_rate);
  pairs.integer("reserved capacity", parameters.capacity);
  pairs.integer("items left", figures.items_left);
  pairs.integer("next layer bytes", figures.next_layer_bytes);
  if (window.is_set() && window.counts_items()) pairs.integer("window items", window.length);
  if (window.is_set() && !window.counts_items()) {
    pairs.number("window seconds", static_cast<double>(window.length) / 1000);
  }
  std::optional<uint64_t> left_ms;
  if (line.expires_at_ms) {
    left_ms = static_cast<uint64_t>(std::max<int64_t>(0, *line.expires_at_ms - now_ms));
  }
  pairs.integer("ttl", left_ms);
}

/* BF.SCAN cursor [MATCH pattern] [COUNT count] */
void filter_scan(Context& ctx) {
  const ScanArguments wanted = parse_scan(ctx, /*knows_type=*/false);
  if (!wanted.error.empty()) return ctx.reply.error(wanted.error);
  const NamePattern pattern(wanted.pattern);
  const OwnKeys own(ctx);
  // Holds the lines of at most one stripe at a time, because COUNT is not limited.
  std::vector<FilterLine> lines;
  ReplyList listed(ctx.reply);
  const uint64_t next = ctx.keyspace().scan(
      ctx.database(), wanted.options,
      [&](const Entry& entry) {
        if (!entry.is_filter() || entry.expired(ctx.now_ms)) return;
        if (own.shows(entry.key())) lines.push_back(line_of(entry));
      },
      // Patterns are matched without a lock, because one match may take many steps.
      [&] {
        for (const FilterLine& line : lines) {
          if (pattern.fits(line.key)) write_line(listed.next(), line, ctx.now_ms);
        }
        lines.clear();
      });
  ctx.reply.array(2);
  ctx.reply.bulk(fmt::format("{}", next));
  listed.write_to(ctx.reply);
}

const Command kFilterScanRows[] = {
    {.name = "bf.scan",
     .arity = -2,
     .flags = kReadOnly | kWholeKeyspace,
     .categories = kBloom | kKeyspace,
     .group = "bloom-ext",
     .since = "1.0.0",
     .summary = "Lists Bloom filters a few keys at a time, each with its items, fill, memory, kind "
                "and TTL",
     .complexity = "O(1) for each call and 64 KiB of each filter that is read. O(N) for all calls "
                   "where N is the number of keys",
     .syntax = "cursor [MATCH pattern] [COUNT count]",
     .handler = filter_scan},
};

}  // namespace

const CommandFamily kFilterScanCommands{{}, kFilterScanRows};

}  // namespace server
