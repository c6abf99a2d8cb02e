// SPDX-License-Identifier: MIT
#include "server/tools/record_blocks.h"

#include <fmt/format.h>

#include <algorithm>

namespace server {
namespace {

constexpr size_t kLengthBytes = sizeof(uint32_t);
// The minimum distance between two offsets at which a block of length-prefixed records may be
// divided into parts.
constexpr size_t kCutDistanceBytes = size_t{64} << 10;

}  // namespace

core::Error RecordBlocks::fault(size_t position, std::string_view what) const {
  return {fmt::format("ERR the record at byte {} {}", offset_ + position, what)};
}

core::Result<> RecordBlocks::fill(size_t size_bytes) {
  size_t filled = buffer_.size();
  buffer_.resize(std::max(filled, size_bytes));
  while (filled < buffer_.size() && !has_ended_) {
    const auto got = source_.read(std::span(buffer_).subspan(filled));
    if (!got) return got.error();
    has_ended_ = *got == 0;
    filled += *got;
  }
  buffer_.resize(filled);
  return {};
}

core::Result<RecordBlock> RecordBlocks::next() {
  RecordBlock block;
  size_t wanted = options_.block_bytes;
  for (;;) {
    if (auto filled = fill(wanted); !filled) return filled.error();
    const auto whole = whole_bytes(block);
    if (!whole) return whole.error();
    if (*whole != 0 || has_ended_) {
      std::string rest = buffer_.substr(*whole);
      buffer_.resize(*whole);
      block.bytes = std::move(buffer_);
      buffer_ = std::move(rest);
      offset_ += *whole;
      if (options_.format == RecordFormat::kLines) cut_lines(block);
      return block;
    }
    // The buffer has one byte more than the longest record with its framing, which suffices to
    // detect a record that is too long.
    wanted = std::min(std::max(wanted, buffer_.size()) * 2,
                      options_.record_bytes_max + kLengthBytes + 1);
  }
}

core::Result<size_t> RecordBlocks::whole_bytes(RecordBlock& block) {
  return options_.format == RecordFormat::kLines ? whole_lines(block) : whole_lengths(block);
}

core::Result<size_t> RecordBlocks::whole_lines(RecordBlock& block) const {
  const size_t last_feed = buffer_.rfind('\n');
  const size_t first_feed = buffer_.find('\n');
  // The buffer grows beyond block_bytes only while it contains no whole line. So only the first
  // line or the unfinished last line can be longer than record_bytes_max.
  if (std::min(first_feed, buffer_.size()) > options_.record_bytes_max) {
    return fault(0, fmt::format("is longer than {} bytes", options_.record_bytes_max));
  }
  size_t whole = last_feed == std::string::npos ? 0 : last_feed + 1;
  const size_t rest = buffer_.size() - whole;
  if (rest > options_.record_bytes_max) {
    return fault(whole, fmt::format("is longer than {} bytes", options_.record_bytes_max));
  }
  if (has_ended_) whole = buffer_.size();
  const auto feeds = std::count(buffer_.begin(), buffer_.end(), '\n');
  block.record_count = static_cast<uint64_t>(feeds) + (has_ended_ && rest != 0);
  return whole;
}

core::Result<size_t> RecordBlocks::whole_lengths(RecordBlock& block) const {
  std::vector<size_t> candidates;
  block.record_count = 0;
  size_t whole = 0;
  size_t next_candidate = kCutDistanceBytes;
  while (buffer_.size() - whole >= kLengthBytes) {
    const size_t size = load_length32(buffer_.data() + whole);
    if (size > options_.record_bytes_max) {
      return fault(whole,
                   fmt::format("claims {} bytes, more than {}", size, options_.record_bytes_max));
    }
    if (buffer_.size() - whole - kLengthBytes < size) break;
    whole += kLengthBytes + size;
    ++block.record_count;
    if (whole < next_candidate) continue;
    candidates.push_back(whole);
    next_candidate = whole + kCutDistanceBytes;
  }
  if (has_ended_ && whole < buffer_.size()) return fault(whole, "is cut off by the end");
  candidates.push_back(whole);
  choose_cuts(block, candidates);
  return whole;
}

void RecordBlocks::cut_lines(RecordBlock& block) const {
  block.cuts = {0};
  for (unsigned i = 1; i < options_.part_count; ++i) {
    const size_t feed = block.bytes.find('\n', block.bytes.size() / options_.part_count * i);
    const size_t cut = feed == std::string::npos ? block.bytes.size() : feed + 1;
    block.cuts.push_back(std::max(cut, block.cuts.back()));
  }
  block.cuts.push_back(block.bytes.size());
}

void RecordBlocks::choose_cuts(RecordBlock& block, const std::vector<size_t>& candidates) const {
  const size_t size = candidates.back();
  block.cuts = {0};
  for (unsigned i = 1; i <= options_.part_count; ++i) {
    const size_t aim = i == options_.part_count ? size : size / options_.part_count * i;
    block.cuts.push_back(*std::ranges::lower_bound(candidates, aim));
  }
}

}  // namespace server
