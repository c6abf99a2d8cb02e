// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "persistence/bytes/crc64.h"

namespace persistence {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kPositionPrefix = "#bloomery-pos:";
constexpr std::string_view kChecksumPrefix = "#bloomery-crc64:";
constexpr std::string_view kVersionPrefix = "#bloomery-ver:";
constexpr std::string_view kTimestampPrefix = "#TS:";
constexpr std::string_view kRewritePrefix = "temp-rewriteaof-";
constexpr size_t kChecksumDigits = 16;
constexpr size_t kReplicationIdDigits = 40;
static_assert(kChecksumPrefix.size() + kChecksumDigits + kLineEnd.size() == kChecksumLineBytes);
static_assert(kAofVersionText.starts_with(kVersionPrefix));

bool is_lower_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool is_checksum(std::string_view digits) {
  return digits.size() == kChecksumDigits && std::ranges::all_of(digits, is_lower_hex);
}

// Returns the whole text as a number; nullopt for signs, other characters or a value that is too
// large.
std::optional<uint64_t> number(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

std::optional<int64_t> count(std::string_view text) {
  const auto value = number(text, 10);
  if (!value || *value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return {};
  return static_cast<int64_t>(*value);
}

// Parses a position line. `text` is the rest of the line after the prefix.
AofAnnotation position_annotation(std::string_view text) {
  const AofAnnotation malformed{.kind = AofAnnotation::Kind::kMalformed};
  const size_t first = text.find(' ');
  if (first != kReplicationIdDigits) return malformed;
  RdbReplicationInfo position{.id = std::string(text.substr(0, first))};
  if (!std::ranges::all_of(position.id, is_lower_hex)) return malformed;
  std::array<int64_t, 3> numbers = {};  // offset, database and epoch of the position
  size_t given = 0;
  for (size_t begin = first + 1; begin != 0; ++given) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const auto value =
        given < numbers.size() ? count(text.substr(begin, end - begin)) : std::nullopt;
    if (!value) return malformed;
    numbers[given] = *value;
    begin = end == text.size() ? 0 : end + 1;
  }
  if (given < 2) return malformed;
  position.offset = numbers[0];
  position.stream_database = numbers[1];
  position.epoch = static_cast<uint64_t>(numbers[2]);
  return {.kind = AofAnnotation::Kind::kPosition, .position = std::move(position)};
}

AofAnnotation annotation(AofAnnotation::Kind kind, std::optional<uint64_t> value) {
  if (!value) return {.kind = AofAnnotation::Kind::kMalformed};
  return {.kind = kind, .value = *value};
}

}  // namespace

std::string AofNames::base(uint64_t sequence, AofBaseFormat format) const {
  return fmt::format("{}.{}.base.{}", name_, sequence,
                     format == AofBaseFormat::kRdb ? "rdb" : "aof");
}

std::string AofNames::incremental(uint64_t sequence) const {
  return fmt::format("{}.{}.incr.aof", name_, sequence);
}

std::string aof_finished_rewrite_name(int64_t process_id) {
  return fmt::format("{}bg-{}.aof", kRewritePrefix, process_id);
}

bool is_aof_rewrite_name(std::string_view name) {
  return name.starts_with(kRewritePrefix) && name.ends_with(".aof");
}

void RunningChecksum::update(std::string_view bytes) {
  value_ = crc64(value_, bytes);
  size_bytes_ += bytes.size();
}

void append_aof_header(std::string& bytes, RunningChecksum& checksum) {
  assert(checksum.size_bytes() == 0);
  std::string header;
  header.append(kAofVersionText).append(kLineEnd);
  end_aof_batch(header, checksum);
  bytes += header;
}

void end_aof_batch(std::string& batch, RunningChecksum& checksum) {
  checksum.update(batch);
  const size_t line = batch.size();
  batch.append(checksum_text(checksum.value())).append(kLineEnd);
  checksum.update(std::string_view(batch).substr(line));
}

void append_timestamp_line(std::string& bytes, int64_t unix_seconds) {
  fmt::format_to(std::back_inserter(bytes), "{}{}{}", kTimestampPrefix, unix_seconds, kLineEnd);
}

void append_position_line(std::string& bytes, const RdbReplicationInfo& position) {
  fmt::format_to(std::back_inserter(bytes), "{}{} {} {}", kPositionPrefix, position.id,
                 position.offset, position.stream_database);
  if (position.epoch != 0) fmt::format_to(std::back_inserter(bytes), " {}", position.epoch);
  bytes += kLineEnd;
}

std::string checksum_text(uint64_t checksum) {
  return fmt::format("{}{:016x}", kChecksumPrefix, checksum);
}

AofAnnotation parse_annotation(std::string_view line) {
  using Kind = AofAnnotation::Kind;
  if (line.starts_with(kChecksumPrefix)) {
    const std::string_view digits = line.substr(kChecksumPrefix.size());
    if (!is_checksum(digits)) return {.kind = Kind::kMalformed};
    return annotation(Kind::kChecksum, number(digits, 16));
  }
  if (line.starts_with(kVersionPrefix)) {
    return annotation(Kind::kVersion, number(line.substr(kVersionPrefix.size()), 10));
  }
  if (line.starts_with(kPositionPrefix)) {
    return position_annotation(line.substr(kPositionPrefix.size()));
  }
  if (line.starts_with(kTimestampPrefix)) {
    // Another server may have written this timestamp line. A value that this server cannot parse
    // therefore does not count as damage.
    const auto seconds = number(line.substr(kTimestampPrefix.size()), 10);
    if (seconds) return {.kind = Kind::kTimestamp, .value = *seconds};
  }
  return {};
}

std::optional<size_t> find_checksum_line(std::string_view bytes) {
  for (size_t at = bytes.find(kChecksumPrefix); at != std::string_view::npos;
       at = bytes.find(kChecksumPrefix, at + 1)) {
    const std::string_view line = bytes.substr(at, kChecksumLineBytes);
    if (line.size() == kChecksumLineBytes && line.ends_with(kLineEnd) &&
        is_checksum(line.substr(kChecksumPrefix.size(), kChecksumDigits))) {
      return at;
    }
  }
  return {};
}

}  // namespace persistence
