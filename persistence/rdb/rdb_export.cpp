// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"
#include "core/memory/memory_budget.h"
#include "core/printable.h"
#include "persistence/filters/redisbloom_codec.h"
#include "persistence/rdb/rdb_check.h"
#include "persistence/rdb/rdb_reader.h"
#include "persistence/rdb/rdb_stream.h"

namespace persistence {
namespace {

using core::bloom::LayoutId;
using core::keyspace::Entry;

struct TargetRow {
  ExportTarget target;
  std::string_view name;
  // layout of the supported filters; nullopt: the target supports no filters
  std::optional<LayoutId> layout;
};
constexpr std::array<TargetRow, 3> kTargets = {{
    {ExportTarget::kRedis, "redis", std::nullopt},
    {ExportTarget::kRedisBloom, "redisbloom", core::bloom::RedisBloomLayout::kRow.id},
    {ExportTarget::kValkeyBloom, "valkey-bloom", core::bloom::ValkeyBloomLayout::kRow.id},
}};

const TargetRow& row_of(ExportTarget target) {
  return *std::ranges::find(kTargets, target, &TargetRow::target);
}

std::string kind_of(const core::bloom::ScalableFilter& filter) {
  std::string_view addition;
  if (filter.parameters().window.is_set()) addition = " with a window";
  if (has_partial_words(filter)) addition = " from before RedisBloom 2.2";
  return fmt::format("{} filter{}", core::bloom::layout_name(filter.layout()), addition);
}

// Returns the module whose layout is the most frequent among the filters without a window. Returns
// kRedis if no module can load any of the filters.
ExportTarget best_target(const RdbCounts& keys) {
  std::array<uint64_t, kTargets.size()> counts{};
  for (const auto& [database, types] : keys) {
    for (size_t i = 0; i < kTargets.size(); ++i) {
      if (!kTargets[i].layout) continue;
      const auto found =
          types.find(fmt::format("{} filter", core::bloom::layout_name(*kTargets[i].layout)));
      if (found != types.end()) counts[i] += found->second;
    }
  }
  return kTargets[static_cast<size_t>(std::ranges::max_element(counts) - counts.begin())].target;
}

// Sieve: the visitor of the second pass, which forwards the values that the target supports.
class Sieve final : public RdbVisitor {
 public:
  Sieve(RdbStream& stream, ExportFigures& figures) : stream_(stream), figures_(figures) {}

  core::Result<> entry(uint64_t database, core::keyspace::EntryPtr entry) override {
    if (entry->is_filter() && !is_loadable(entry->filter())) {
      leave_out(database, *entry);
      return {};
    }
    if (database_ != database) {
      stream_.database(database);
      database_ = database;
      figures_.database_max = std::max(figures_.database_max, database);
    }
    ++(entry->is_filter() ? figures_.filter_count : figures_.string_count);
    stream_.key(*entry);
    return stream_.status();
  }
  void foreign(uint64_t /*database*/, std::string_view type) override {
    ++figures_.left_out[std::string(type)].count;
  }

 private:
  // Returns whether the target loads the filter. If it does not, it rejects the whole file.
  bool is_loadable(const core::bloom::ScalableFilter& filter) const {
    return filter.layout() == row_of(figures_.target).layout && !has_partial_words(filter);
  }
  void leave_out(uint64_t database, const Entry& entry) {
    LeftOut& kind = figures_.left_out[kind_of(entry.filter())];
    if (kind.names.size() < kNamesShownMax) {
      const std::string name = core::printable(entry.key());
      kind.names.push_back(database == 0 ? name : fmt::format("{} (db {})", name, database));
    }
    ++kind.count;
  }

  RdbStream& stream_;
  ExportFigures& figures_;
  std::optional<uint64_t> database_;
};

class Exporter {
 public:
  Exporter(FileSystem& files, const ExportRequest& request) : files_(files), request_(request) {}

  core::Result<ExportFigures> run() {
    if (auto free = check_place(); !free) return free.error();
    if (auto checked = check_source(); !checked) return checked.error();
    const auto written = write_whole_file(files_, request_.place.temporary,
                                          [this](ByteSink& sink) { return copy(sink); });
    if (!written) return written.error();
    figures_.file_bytes = written->bytes;
    if (auto placed = put_in_place(); !placed) return placed.error();
    return std::move(figures_);
  }

 private:
  core::Result<> check_place() {
    figures_.replaced = files_.exists(request_.place.path);
    if (!figures_.replaced || request_.may_replace) return {};
    // exists() also returns true if the path cannot be examined. The reason is then the error.
    if (auto size = files_.size_bytes(request_.place.path); !size) return size.error();
    return core::Error{fmt::format("ERR '{}' is there already; --overwrite replaces it",
                                   core::printable(request_.place.path))};
  }

  core::Result<> check_source() {
    const auto file = files_.open_input(request_.source);
    if (!file) return file.error();
    source_bytes_ = (*file)->size_bytes();
    const RdbSummary summary =
        check_rdb(**file, [this](const RdbProgress& progress) { report(progress.bytes); });
    if (summary.error) return in_source(*summary.error);
    figures_.target = request_.target.value_or(best_target(summary.keys));
    return {};
  }

  core::Result<RdbProgress> copy(ByteSink& sink) {
    const auto file = files_.open_input(request_.source);
    if (!file) return file.error();
    RdbWriteOptions options;
    options.is_for_others = true;
    options.server_version = request_.server_version;
    options.created_at_s = request_.created_at_s;
    RdbStream stream(sink, options);
    stream.header();
    Sieve sieve(stream, figures_);
    RdbReadOptions reading;
    reading.foreign_types = ForeignTypes::kSkip;
    reading.on_progress = [this](const RdbProgress& progress) {
      report(source_bytes_ + progress.bytes);
    };
    const auto read = read_rdb(**file, sieve, core::UnlimitedMemory(), reading);
    // If writing fails, read_rdb() returns an error too. The error of the write names the cause, so
    // it is returned first.
    if (auto sound = stream.status(); !sound) return sound.error();
    if (!read) return in_source(read.error());
    return stream.finish();
  }

  core::Result<> put_in_place() {
    const RdbPlace& place = request_.place;
    // Another program may have created a file at the path while this program wrote its output.
    auto free = figures_.replaced ? core::Result<>() : check_place();
    if (free) return move_into_place(files_, place.temporary, place.path);
    (void)files_.remove(place.temporary);
    return free;
  }

  core::Error in_source(const core::Error& error) const {
    return {fmt::format("ERR '{}': {}", core::printable(request_.source),
                        core::without_code(error.message))};
  }

  void report(uint64_t done_bytes) const {
    if (request_.on_progress) request_.on_progress(done_bytes, 2 * source_bytes_);
  }

  FileSystem& files_;
  const ExportRequest& request_;
  ExportFigures figures_;
  uint64_t source_bytes_ = 0;
};

}  // namespace

std::string_view export_target_name(ExportTarget target) {
  return row_of(target).name;
}

std::optional<ExportTarget> parse_export_target(std::string_view name) {
  const auto* const row = std::ranges::find(kTargets, name, &TargetRow::name);
  if (row == kTargets.end()) return std::nullopt;
  return row->target;
}

core::Result<ExportFigures> export_rdb(FileSystem& files, const ExportRequest& request) {
  try {
    return Exporter(files, request).run();
  } catch (const std::bad_alloc&) {
    return core::Error{"OOM not enough memory to read a value", core::ErrorCode::kOutOfMemory};
  }
}

}  // namespace persistence
