// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_times.h"

#include <cassert>
#include <string_view>

#include "persistence/aof/aof_format.h"
#include "persistence/aof/aof_lexer.h"

namespace persistence {
namespace {

std::optional<uint64_t> timestamp_of(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  const AofAnnotation annotation = parse_annotation(line);
  if (annotation.kind != AofAnnotation::Kind::kTimestamp) return std::nullopt;
  return annotation.value;
}

}  // namespace

core::Result<AofTimes> read_aof_times(FileSystem& files, const std::string& path,
                                      const AofScan& scan, uint64_t until_s) {
  assert(scan.condition != AofScan::Condition::kDamaged);
  auto file = files.open_input(path);
  if (!file) return file.error();
  AofLexer lexer(**file, scan.sound_bytes);
  auto skipped = lexer.skip(scan.preamble_bytes, [](std::string_view) {});
  if (!skipped) return skipped.error();
  AofTimes times;
  // `begin` is the offset of the current unit: a transaction, or a single item outside of a
  // transaction. The file must not be cut inside a unit.
  bool in_transaction = false;
  uint64_t begin = 0;
  for (;;) {
    auto item = lexer.next();
    if (!item) return item.error();
    if (!in_transaction) begin = lexer.offset();
    if (*item == AofLexer::Item::kCommand) {
      in_transaction =
          is_aof_multi(lexer.arguments()) || (in_transaction && !is_aof_exec(lexer.arguments()));
      continue;
    }
    if (*item != AofLexer::Item::kAnnotation) return times;
    const auto second = timestamp_of(lexer.line());
    if (!second) continue;
    if (!times.first_s) times.first_s = second;
    if (*second <= until_s) continue;
    times.later_offset = begin;
    return times;
  }
}

}  // namespace persistence
