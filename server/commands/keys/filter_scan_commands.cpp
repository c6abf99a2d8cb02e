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
#include "server/dispatch/context.h"
#include "server/dispatch/own_keys.h"

namespace server {
namespace {

// The number of bytes of a filter that are read. Half a million bits give a fill ratio with an
// error of about a thousandth.
constexpr uint64_t kScannedBytes = uint64_t{64} << 10;

struct FilterLine {
  std::string key;
  core::bloom::FilterParameters parameters;
  uint64_t items = 0;
  uint64_t capacity = 0;
  uint64_t size_bytes = 0;
  size_t layers = 0;
  double fill_ratio = 0;
  double predicted_error_rate = 0;
  std::optional<uint64_t> items_left;
  std::optional<uint64_t> next_layer_bytes;
  std::optional<int64_t> expires_at_ms;
};

FilterLine line_of(const Entry& entry) {
  const core::bloom::ScalableFilter& filter = entry.filter();
  FilterLine line{std::string(entry.key()),
                  filter.parameters(),
                  filter.item_count(),
                  filter.capacity(),
                  filter.size_bytes(),
                  filter.layer_count(),
                  fill_ratio_of(filter, kScannedBytes),
                  filter.predicted_error_rate(),
                  items_left_in(filter),
                  filter.next_layer_bytes(),
                  std::nullopt};
  if (entry.has_expiry()) line.expires_at_ms = entry.expires_at_ms();
  return line;
}

// LineWriter writes the fields of one filter, with the labels of BF.STATS.
class LineWriter {
 public:
  explicit LineWriter(protocol::ReplyWriter& reply) : reply_(reply) {}

  void write(const FilterLine& line, int64_t now_ms) {
    const core::bloom::FilterParameters& parameters = line.parameters;
    reply_.map(14 + size_t{parameters.window.is_set()});
    text("key", line.key);
    text("layout", core::bloom::layout_name(parameters.layout));
    count("items", line.items);
    count("capacity", line.capacity);
    number("fill ratio", line.fill_ratio);
    number("predicted error rate", line.predicted_error_rate);
    count("bytes", line.size_bytes);
    count("layers", line.layers);
    text("kind", kind_of(parameters));
    number("error rate", parameters.error_rate);
    count("reserved capacity", parameters.capacity);
    count("items left", line.items_left);
    count("next layer bytes", line.next_layer_bytes);
    if (parameters.window.is_set()) write_window(parameters.window);
    std::optional<uint64_t> left_ms;
    if (line.expires_at_ms) {
      left_ms = static_cast<uint64_t>(std::max<int64_t>(0, *line.expires_at_ms - now_ms));
    }
    count("ttl", left_ms);
  }

 private:
  void text(std::string_view label, std::string_view value) {
    reply_.bulk(label);
    reply_.bulk(value);
  }
  void count(std::string_view label, std::optional<uint64_t> value) {
    reply_.bulk(label);
    value ? reply_.integer(static_cast<int64_t>(*value)) : reply_.null();
  }
  void number(std::string_view label, double value) {
    reply_.bulk(label);
    reply_.shortest_number(value);
  }
  void write_window(const core::bloom::WindowSettings& window) {
    if (window.counts_items()) return count("window items", window.length);
    number("window seconds", static_cast<double>(window.length) / 1000);
  }
  static std::string_view kind_of(const core::bloom::FilterParameters& parameters) {
    if (parameters.window.is_set()) return "windowed";
    return core::bloom::layout_row(parameters.layout).clears_bits ? "deletable" : "plain";
  }

  protocol::ReplyWriter& reply_;
};

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
  LineWriter writer(ctx.reply);
  for (const FilterLine& line : lines) writer.write(line, ctx.now_ms);
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
