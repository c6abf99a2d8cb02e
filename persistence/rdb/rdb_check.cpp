// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_check.h"

#include <fmt/format.h>

#include "core/bloom/parameters.h"
#include "core/bloom/scalable_filter.h"
#include "core/printable.h"
#include "persistence/bytes/stream_reader.h"
#include "persistence/rdb/seen_keys.h"

namespace persistence {
namespace {

using core::keyspace::Entry;
using core::keyspace::EntryPtr;

std::string type_of(const Entry& entry) {
  if (entry.is_string()) return "string";
  return fmt::format("{} filter", core::bloom::layout_name(entry.filter().layout()));
}

class Counter final : public RdbVisitor {
 public:
  explicit Counter(RdbSummary& summary) : summary_(summary) {}

  core::Result<> aux(std::string_view name, std::string_view value) override {
    summary_.aux.emplace_back(name, value);
    return {};
  }
  core::Result<> entry(uint64_t database, EntryPtr entry) override {
    if (auto inserted = seen_.insert(database, entry->key()); !inserted) return inserted;
    ++summary_.keys[database][type_of(*entry)];
    if (entry->has_expiry()) ++summary_.keys_with_expiry;
    return {};
  }
  void foreign(uint64_t database, std::string_view type) override {
    ++summary_.foreign[database][std::string(type)];
  }

 private:
  RdbSummary& summary_;
  SeenKeys seen_;
};

// Anyone can write AUX fields, so line breaks and terminal codes are escaped.
std::string printable(std::string_view value) {
  constexpr size_t kShownMax = 100;
  std::string text;
  for (const char c : value.substr(0, kShownMax)) {
    const bool is_plain = c >= ' ' && c <= '~' && c != '\\';
    text += is_plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
  }
  return value.size() > kShownMax ? text + "..." : text;
}

void append_counts(std::string& text, const RdbCounts& counts, std::string_view suffix) {
  for (const auto& [database, types] : counts) {
    for (const auto& [type, count] : types) {
      text += fmt::format("database {}: {} {}{}\n", database, count, type, suffix);
    }
  }
}

}  // namespace

RdbSummary check_rdb(ByteSource& source, const RdbProgressCallback& on_progress) {
  RdbSummary summary;
  Counter counter(summary);
  RdbReadOptions options;
  options.foreign_types = ForeignTypes::kSkip;
  options.on_progress = on_progress;
  const core::UnlimitedMemory bounded_by_the_file;
  auto read = read_rdb(source, counter, bounded_by_the_file, options);
  if (read) {
    summary.file = *read;
  } else {
    summary.error = read.error();
  }
  return summary;
}

std::string describe(const RdbSummary& summary) {
  std::string text;
  for (const auto& [name, value] : summary.aux) {
    text += fmt::format("{}: {}\n", printable(name), printable(value));
  }
  append_counts(text, summary.keys, "");
  append_counts(text, summary.foreign, " (foreign)");
  text += fmt::format("keys with an expiry: {}\n", summary.keys_with_expiry);
  if (summary.error) return text + fmt::format("ERROR: {}\n", summary.error->message);
  const RdbReadResult& file = summary.file;
  text +=
      fmt::format("{} version {}, {} bytes, check sum {}\n", file.is_valkey ? "VALKEY" : "REDIS",
                  file.version, file.total.bytes, file.has_sum ? "ok" : "not written");
  return text + "OK\n";
}

RdbVerdict check_rdb_file(FileSystem& files, const std::string& path) {
  const auto file = files.open_input(path);
  if (!file) return {fmt::format("ERROR: {}\n", core::without_code(file.error().message)), false};
  const RdbSummary summary = check_rdb(**file);
  return {fmt::format("{}:\n{}", core::printable(path), describe(summary)), !summary.error};
}

}  // namespace persistence
