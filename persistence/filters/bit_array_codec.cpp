// SPDX-License-Identifier: MIT
#include "persistence/filters/bit_array_codec.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace persistence {
namespace {

using core::bloom::BitArray;
using core::bloom::kArrayPageBytes;

constexpr size_t kLineBytes = 64;

std::string_view view(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_zero_line(std::string_view line) {
  constexpr std::array<char, kLineBytes> kZeros{};
  return std::memcmp(line.data(), kZeros.data(), line.size()) == 0;
}

void write_zeros(ByteWriter& writer, uint64_t count) {
  constexpr std::array<char, kArrayPageBytes> kZeros{};
  for (; count > 0 && writer.ok();) {
    const uint64_t size = std::min<uint64_t>(count, kZeros.size());
    writer.bytes({kZeros.data(), size});
    count -= size;
  }
}

// RunBuilder: joins pieces of the array that are close to each other into runs, and passes each run
// to the visitor.
class RunBuilder {
 public:
  RunBuilder(RunLimits limits, const RunVisitor& visit) : limits_(limits), visit_(visit) {}

  void add(uint64_t offset, std::string_view piece) {
    const uint64_t end = start_ + run_.size();
    const bool goes_on = !run_.empty() && offset - end <= limits_.gap_bytes_max;
    if (!goes_on) {
      flush();
      start_ = offset;
    } else {
      append_zeros(offset - end);
    }
    while (!piece.empty()) {
      const uint64_t room = make_room();
      run_.append(piece.substr(0, room));
      piece.remove_prefix(std::min<uint64_t>(room, piece.size()));
    }
  }
  void flush() {
    if (!run_.empty()) visit_(start_, run_);
    start_ += run_.size();
    run_.clear();
  }

 private:
  uint64_t make_room() {
    if (run_.size() >= limits_.run_bytes_max) flush();
    return limits_.run_bytes_max - run_.size();
  }
  void append_zeros(uint64_t count) {
    while (count > 0) {
      const uint64_t size = std::min(make_room(), count);
      run_.append(size, '\0');
      count -= size;
    }
  }

  RunLimits limits_;
  const RunVisitor& visit_;
  std::string run_;
  uint64_t start_ = 0;
};

// Adds to `runs` each sequence of adjacent non-zero 64-byte lines of a page.
void add_page(RunBuilder& runs, uint64_t offset, std::string_view page) {
  for (size_t at = 0; at < page.size();) {
    const auto is_zero_at = [&](size_t line) {
      return is_zero_line(page.substr(line, kLineBytes));
    };
    while (at < page.size() && is_zero_at(at)) at += kLineBytes;
    const size_t start = at;
    while (at < page.size() && !is_zero_at(at)) at += kLineBytes;
    if (start < page.size()) runs.add(offset + start, page.substr(start, at - start));
  }
}

}  // namespace

void for_each_run(const BitArray& bits, RunLimits limits, const RunVisitor& visit) {
  RunBuilder runs(limits, visit);
  std::array<char, kArrayPageBytes> page;
  bits.visit_data(0, bits.bytes().size(), [&](uint64_t offset, std::span<const std::byte> data) {
    std::memcpy(page.data(), data.data(), data.size());
    add_page(runs, offset, {page.data(), data.size()});
  });
  runs.flush();
}

void write_plain(ByteWriter& writer, const BitArray& bits, uint64_t from, uint64_t to) {
  uint64_t written = from;
  bits.visit_data(from, to, [&](uint64_t offset, std::span<const std::byte> data) {
    write_zeros(writer, offset - written);
    writer.bytes(view(data));
    written = offset + data.size();
  });
  write_zeros(writer, to - written);
}

bool read_plain(StringReader& in, BitArray& bits, uint64_t offset, uint64_t size) {
  if (!bits.is_mapped()) {
    const std::span<std::byte> place = bits.bytes().subspan(offset, size);
    return in.read_fresh({reinterpret_cast<char*>(place.data()), place.size()});
  }
  std::array<char, 4 * kArrayPageBytes> unpacked;
  while (size > 0) {
    std::string_view part = in.take_loaded(size);
    if (part.empty()) {
      part = {unpacked.data(), std::min<uint64_t>(size, unpacked.size())};
      if (!in.read(std::span(unpacked).first(part.size()))) return false;
    }
    bits.write(offset, std::as_bytes(std::span(part)));
    offset += part.size();
    size -= part.size();
  }
  return true;
}

void write_runs(ByteWriter& writer, ModuleWriter& fields, const BitArray& bits) {
  uint64_t written = 0;
  const auto write = [&](uint64_t offset, std::string_view run) {
    fields.unsigned_number(offset - written);
    fields.string_head(run.size());
    writer.bytes(run);
    written = offset + run.size();
  };
  for_each_run(bits, {}, write);
  if (written < bits.bytes().size()) write(bits.bytes().size(), {});
}

bool read_runs(ModuleReader& in, BitArray& bits) {
  uint64_t left = bits.bytes().size();
  while (left > 0) {
    const uint64_t zeros = in.unsigned_number();
    StringReader run = in.string();
    if (!in.ok() || zeros > left || run.size() > left - zeros || zeros + run.size() == 0) {
      return false;
    }
    left -= zeros;
    if (!read_plain(run, bits, bits.bytes().size() - left, run.size())) return false;
    left -= run.size();
  }
  return true;
}

}  // namespace persistence
