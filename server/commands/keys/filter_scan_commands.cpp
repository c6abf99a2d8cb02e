// SPDX-License-Identifier: MIT
//
// BF.SCAN: lists filters and their state, a page at a time.
//
// A page is read as SCAN reads its own. At most kReadBytes of each filter are read, under its
// stripe's shared lock.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "server/commands/bloom/filter_figures.h"
#include "server/commands/keys/scan_arguments.h"
#include "server/dispatch/context.h"
#include "server/dispatch/families.h"
#include "server/dispatch/ownership/own_keys.h"

namespace server {
namespace {

// Half a million bits give a fill ratio to about a thousandth.
constexpr uint64_t kReadBytes = uint64_t{64} << 10;

struct FilterLine {
  std::string key;
  core::bloom::LayoutId layout{};
  uint64_t items = 0;
  uint64_t capacity = 0;
  uint64_t size_bytes = 0;
  size_t layers = 0;
  double fill_ratio = 0;
  double predicted_error_rate = 0;
};

FilterLine line_of(const Entry& entry) {
  const core::bloom::ScalableFilter& filter = entry.filter();
  return {std::string(entry.key()),
          filter.layout(),
          filter.item_count(),
          filter.capacity(),
          filter.size_bytes(),
          filter.layer_count(),
          fill_ratio_of(filter, kReadBytes),
          filter.predicted_error_rate()};
}

// The labels are those of BF.STATS.
void write_line(protocol::ReplyWriter& reply, const FilterLine& line) {
  const auto count = [&reply](std::string_view label, uint64_t value) {
    reply.bulk(label);
    reply.integer(static_cast<int64_t>(value));
  };
  const auto number = [&reply](std::string_view label, double value) {
    reply.bulk(label);
    reply.shortest_number(value);
  };
  reply.map(8);
  reply.bulk("key");
  reply.bulk(line.key);
  reply.bulk("layout");
  reply.bulk(core::bloom::layout_name(line.layout));
  count("items", line.items);
  count("capacity", line.capacity);
  number("fill ratio", line.fill_ratio);
  number("predicted error rate", line.predicted_error_rate);
  count("bytes", line.size_bytes);
  count("layers", line.layers);
}

/* BF.SCAN cursor [MATCH pattern] [COUNT count] */
void filter_scan(Context& ctx) {
  const ScanArguments wanted = parse_scan(ctx, /*knows_type=*/false);
  if (!wanted.error.empty()) return ctx.reply.error(wanted.error);
  const NamePattern pattern(wanted.pattern);
  const OwnKeys own(ctx);
  std::vector<FilterLine> lines;
  const uint64_t next =
      ctx.keyspace().scan(ctx.database(), wanted.options, [&](const Entry& entry) {
        if (!entry.is_filter() || entry.expired(ctx.now_ms)) return;
        if (own.shows(entry.key())) lines.push_back(line_of(entry));
      });
  // Patterns are matched without a lock, because one match may take many steps.
  std::erase_if(lines, [&](const FilterLine& line) { return !pattern.fits(line.key); });
  ctx.reply.array(2);
  ctx.reply.bulk(fmt::format("{}", next));
  ctx.reply.array(lines.size());
  for (const FilterLine& line : lines) write_line(ctx.reply, line);
}

const Command kFilterScanRows[] = {
    {.name = "bf.scan",
     .arity = -2,
     .flags = kReadOnly | kWholeKeyspace,
     .categories = kBloom | kKeyspace,
     .group = "bloom-ext",
     .since = "0.1.0",
     .summary = "Lists Bloom filters a few keys at a time, each with its items, fill and memory",
     .complexity = "O(1) for each call and 64 KiB of each filter that is read, O(N) for all calls "
                   "where N is the number of keys",
     .syntax = "cursor [MATCH pattern] [COUNT count]",
     .handler = filter_scan},
};

}  // namespace

std::span<const Command> filter_scan_commands() {
  return kFilterScanRows;
}

}  // namespace server
