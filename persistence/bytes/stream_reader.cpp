// SPDX-License-Identifier: MIT
#include "persistence/bytes/stream_reader.h"

#include <fmt/format.h>
#include <liblzf/lzf.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstring>
#include <utility>

#include "core/memory/populate_pages.h"
#include "persistence/bytes/crc64.h"

namespace persistence {
namespace {

constexpr std::string_view kTooShort = "the bytes end here too early";
constexpr std::string_view kTooLong = "a string is longer than the remaining bytes";
constexpr std::string_view kBadPacking = "packed bytes of a string are damaged";

// The maximum encoded size of numbers and lengths.
constexpr size_t kLookAheadMax = 9;
// The maximum number of bytes per read when bytes are read without the buffer.
constexpr size_t kDirectPieceBytes = size_t{1} << 20;

// Three bytes of LZF data expand to at most 264 bytes, so a larger claimed size is invalid.
constexpr uint64_t kLzfRatioMax = 88;
// An LZF run whose first byte is below this value consists of literal bytes. Any other run refers
// to earlier bytes.
constexpr unsigned kLiteralMax = 32;

}  // namespace

StreamReader::StreamReader(std::string_view bytes)
    : next_(bytes.data()),
      end_(bytes.data() + bytes.size()),
      summed_(next_),
      loaded_bytes_(bytes.size()),
      bound_(bytes.size()) {}

StreamReader::StreamReader(ByteSource& source, Options options)
    : source_(&source), options_(std::move(options)), bound_(source.size_bound()) {
  buffer_.resize(std::max(options_.buffer_bytes, kLookAheadMax));
  next_ = end_ = summed_ = buffer_.data();
}

void StreamReader::fail(std::string_view reason, core::ErrorCode code) {
  if (!ok()) return;
  error_ = core::Error{fmt::format("offset {}: {}", offset(), core::without_code(reason)), code};
}

uint64_t StreamReader::left_bound() const {
  if (!ok()) return 0;
  return bound_ > offset() ? bound_ - offset() : 0;
}

void StreamReader::sum_up_to(const char* end) {
  if (options_.sums) sum_ = crc64(sum_, {summed_, static_cast<size_t>(end - summed_)});
  summed_ = end;
}

uint64_t StreamReader::sum() {
  sum_up_to(next_);
  return sum_;
}

void StreamReader::settle_taken() {
  if (capture_) {
    if (!capture_->sum_before) {
      sum_up_to(capture_->copied);
      capture_->sum_before = sum_;
    }
    copy_captured();
  }
  sum_up_to(next_);
}

bool StreamReader::load_more() {
  if (!ok() || source_ == nullptr) return false;
  settle_taken();
  const size_t kept = static_cast<size_t>(end_ - next_);
  std::memmove(buffer_.data(), next_, kept);
  // The buffer is shrunk, because give_back() may have enlarged it.
  if (buffer_.size() > options_.buffer_bytes && kept < options_.buffer_bytes) {
    buffer_.resize(std::max(options_.buffer_bytes, kLookAheadMax));
  }
  next_ = summed_ = buffer_.data();
  if (capture_) capture_->copied = next_;
  end_ = next_ + kept;
  auto got = source_->read(std::span(buffer_).subspan(kept));
  if (!got) {
    fail(got.error().message);
    return false;
  }
  end_ += *got;
  loaded_bytes_ += *got;
  if (*got > 0 && options_.on_piece) options_.on_piece();
  return *got > 0;
}

bool StreamReader::ensure(size_t size) {
  while (ok() && static_cast<size_t>(end_ - next_) < size) {
    if (!load_more()) fail(kTooShort);
  }
  return ok();
}

uint64_t StreamReader::length() {
  if (!ensure(1)) return 0;
  return parse(&ByteReader::length, encoded_length_bytes(static_cast<uint8_t>(*next_)));
}

bool StreamReader::allows(uint64_t size) {
  if (ok() && size > left_bound()) fail(kTooLong);
  return ok();
}

StringReader StreamReader::string() {
  if (!ensure(1)) return StringReader::plain(*this, 0);
  const auto first = static_cast<uint8_t>(*next_);
  if (!is_special_string(first)) return StringReader::plain(*this, length());
  u8();
  switch (static_cast<SpecialString>(first)) {
    case SpecialString::kInt8:
      return StringReader::integer(*this, static_cast<int8_t>(u8()));
    case SpecialString::kInt16:
      return StringReader::integer(*this, static_cast<int16_t>(u16()));
    case SpecialString::kInt32:
      return StringReader::integer(*this, static_cast<int32_t>(u32()));
    case SpecialString::kLzf:
      return StringReader::packed(*this);
  }
  fail("a string has a form that does not exist");
  return StringReader::plain(*this, 0);
}

bool StreamReader::read_directly(std::span<char> out) {
  assert(next_ == end_);
  settle_taken();
  while (!out.empty()) {
    auto got = source_->read(out.first(std::min(out.size(), kDirectPieceBytes)));
    if (!got || *got == 0) {
      fail(got ? kTooShort : std::string_view(got.error().message));
      return false;
    }
    if (options_.sums) sum_ = crc64(sum_, {out.data(), *got});
    loaded_bytes_ += *got;
    out = out.subspan(*got);
    if (options_.on_piece) options_.on_piece();
  }
  return true;
}

bool StreamReader::read(std::span<char> out) {
  while (ok() && !out.empty()) {
    const size_t count = std::min(out.size(), static_cast<size_t>(end_ - next_));
    std::copy_n(next_, count, out.data());
    next_ += count;
    out = out.subspan(count);
    if (out.empty()) return true;
    if (source_ != nullptr && out.size() >= buffer_.size()) return read_directly(out);
    if (!load_more()) fail(kTooShort);
  }
  return ok();
}

bool StreamReader::skip(uint64_t count) {
  if (!allows(count) || !has_room_to_capture(count)) return false;
  while (ok() && count > 0) {
    const uint64_t here = std::min(count, static_cast<uint64_t>(end_ - next_));
    next_ += here;
    count -= here;
    if (capture_ && count >= buffer_.size()) {
      // A long string is read from the source directly into the captured bytes.
      settle_taken();
      return read_directly(capture_->out.grow(count));
    }
    if (count > 0 && !load_more()) fail(kTooShort);
  }
  return ok();
}

std::string_view StreamReader::take_loaded(uint64_t size_max) {
  if (next_ == end_ && size_max > 0 && !load_more()) {
    fail(kTooShort);
    return {};
  }
  const auto size = std::min(size_max, static_cast<uint64_t>(end_ - next_));
  const std::string_view part(next_, size);
  next_ += size;
  return part;
}

std::optional<std::string_view> StreamReader::take_whole(uint64_t size) {
  const bool has_room = source_ == nullptr || size <= buffer_.size();
  if (!has_room || !ensure(size)) return std::nullopt;
  next_ += size;
  return std::string_view(next_ - size, size);
}

void StreamReader::begin_capture(RawBytes& out, uint64_t bytes_max) {
  assert(source_ != nullptr && !capture_);
  capture_.emplace(Capture{out, out.size(), bytes_max, next_, std::nullopt});
}

void StreamReader::copy_captured() {
  if (!capture_) return;
  capture_->out.append({capture_->copied, static_cast<size_t>(next_ - capture_->copied)});
  capture_->copied = next_;
}

bool StreamReader::has_room_to_capture(uint64_t count) {
  if (!capture_) return true;
  const uint64_t taken =
      capture_->out.size() - capture_->begin + static_cast<uint64_t>(next_ - capture_->copied);
  if (taken <= capture_->bytes_max && count <= capture_->bytes_max - taken) {
    // The memory for a long string is reserved at once, instead of by doubling.
    if (count > options_.buffer_bytes) capture_->out.reserve(capture_->begin + taken + count);
    return true;
  }
  capture_->is_overfull = true;
  fail("too long to capture");
  return false;
}

bool StreamReader::end_capture() {
  if (capture_->is_overfull) settle_taken();
  copy_captured();
  const bool is_whole = !capture_->is_overfull;
  if (!is_whole) give_back();
  capture_.reset();
  return is_whole;
}

void StreamReader::give_back() {
  std::string buffer(capture_->out.view().substr(capture_->begin));
  capture_->out.shrink(capture_->begin);
  buffer.append(next_, end_);
  const size_t loaded = buffer.size();
  buffer.resize(std::max(loaded, options_.buffer_bytes));
  buffer_ = std::move(buffer);
  next_ = summed_ = buffer_.data();
  end_ = next_ + loaded;
  sum_ = *capture_->sum_before;
  error_.reset();
}

bool StreamReader::at_end() {
  return ok() && next_ == end_ && !load_more() && ok();
}

StreamReader::Window& StreamReader::window() {
  if (window_ == nullptr) window_ = std::make_unique<Window>();
  return *window_;
}

StringReader StringReader::plain(StreamReader& reader, uint64_t size) {
  return {reader, Form::kPlain, reader.allows(size) ? size : 0};
}

StringReader StringReader::integer(StreamReader& reader, int32_t value) {
  StringReader result(reader, Form::kInteger, 0);
  if (!reader.ok()) return result;
  char* first = result.digits_.data();
  const auto end = std::to_chars(first, first + result.digits_.size(), value);
  result.size_ = result.left_ = static_cast<uint64_t>(end.ptr - first);
  return result;
}

StringReader StringReader::packed(StreamReader& reader) {
  const uint64_t packed_size = reader.length();
  const uint64_t size = reader.length();
  if (!reader.allows(packed_size)) return {reader, Form::kPlain, 0};
  // The comparison divides, because the product of a stored size and kLzfRatioMax could overflow.
  if (size == 0 || (size - 1) / kLzfRatioMax >= packed_size) {
    reader.fail(kBadPacking);
    return {reader, Form::kPlain, 0};
  }
  StringReader result(reader, Form::kPacked, size);
  result.packed_left_ = packed_size;
  return result;
}

bool StringReader::read(std::span<char> out) {
  assert(out.size() <= left_ || !reader_.ok());
  if (!reader_.ok()) return false;
  switch (form_) {
    case Form::kPlain:
      left_ -= out.size();
      return reader_.read(out);
    case Form::kInteger:
      std::copy_n(digits_.data() + (size_ - left_), out.size(), out.data());
      left_ -= out.size();
      return true;
    case Form::kPacked:
      return unpack(out);
  }
  return false;
}

bool StringReader::read_fresh(std::span<char> out) {
  if (form_ != Form::kPlain) return read(out);
  while (!out.empty()) {
    const auto piece = out.first(std::min(out.size(), core::kPopulatedBytesMax));
    core::populate_pages(std::as_bytes(piece));
    if (!read(piece)) return false;
    out = out.subspan(piece.size());
  }
  return reader_.ok();
}

std::string_view StringReader::take_loaded(uint64_t size_max) {
  if (form_ != Form::kPlain || !reader_.ok()) return {};
  const std::string_view part = reader_.take_loaded(std::min(size_max, left_));
  left_ -= part.size();
  return part;
}

std::optional<std::string_view> StringReader::take_whole() {
  assert(left_ == size_);
  if (form_ != Form::kPlain || !reader_.ok()) return std::nullopt;
  const auto whole = reader_.take_whole(size_);
  if (whole) left_ = 0;
  return whole;
}

bool StringReader::skip() {
  if (form_ == Form::kInteger) return reader_.ok();
  return reader_.skip(form_ == Form::kPlain ? left_ : packed_left_ + literal_left_);
}

bool StringReader::fail_unpacking() {
  reader_.fail(kBadPacking);
  return false;
}

// Decompresses with the LZF library if all compressed bytes are loaded. If that is impossible or
// fails, returns false and consumes nothing. The slow path then finds the damaged byte.
bool StringReader::unpack_whole(std::span<char> out) {
  // The sizes are limited, because the LZF library counts in `unsigned`.
  constexpr uint64_t kBytesMax = uint64_t{1} << 30;
  const std::string_view loaded = reader_.read_ahead();
  const bool can_try = out.size() == size_ && left_ == size_ && packed_left_ <= loaded.size() &&
                       size_ <= kBytesMax && packed_left_ <= kBytesMax;
  if (!can_try) return false;
  const unsigned size = lzf_decompress(loaded.data(), static_cast<unsigned>(packed_left_),
                                       out.data(), static_cast<unsigned>(out.size()));
  if (size != out.size() || !reader_.skip(packed_left_)) return false;
  left_ = packed_left_ = 0;
  return true;
}

bool StringReader::unpack(std::span<char> out) {
  if (unpack_whole(out)) return true;
  while (!out.empty()) {
    if (literal_left_ == 0 && match_left_ == 0 && !next_run()) return false;
    const size_t count = std::min<size_t>(out.size(), literal_left_ + match_left_);
    if (literal_left_ > 0) {
      if (!reader_.read(out.first(count))) return false;
      copy_literal(out.first(count));
    } else {
      copy_match(out.first(count));
    }
    left_ -= count;
    out = out.subspan(count);
  }
  const bool is_done = left_ > 0 || packed_left_ == 0;
  return is_done || fail_unpacking();
}

bool StringReader::next_run() {
  const auto take = [this]() -> unsigned {
    if (packed_left_ == 0) {
      fail_unpacking();
      return 0;
    }
    --packed_left_;
    return reader_.u8();
  };
  const unsigned first = take();
  if (first < kLiteralMax) {
    literal_left_ = first + 1;
    if (literal_left_ > packed_left_ || literal_left_ > left_) return fail_unpacking();
    packed_left_ -= literal_left_;
    return reader_.ok();
  }
  constexpr unsigned kLongMatch = 7;
  const unsigned short_size = first >> 5;
  match_left_ = short_size + (short_size == kLongMatch ? take() : 0) + 2;
  match_offset_ = ((first & 31) << 8 | take()) + 1;
  const bool is_sound = match_left_ <= left_ && match_offset_ <= size_ - left_;
  if (!is_sound) return fail_unpacking();
  return reader_.ok();
}

void StringReader::copy_literal(std::span<char> out) {
  StreamReader::Window& window = reader_.window();
  uint64_t position = size_ - left_;
  for (const char byte : out) window[position++ % window.size()] = byte;
  literal_left_ -= static_cast<unsigned>(out.size());
}

void StringReader::copy_match(std::span<char> out) {
  StreamReader::Window& window = reader_.window();
  uint64_t position = size_ - left_;
  for (char& byte : out) {
    byte = window[(position - match_offset_) % window.size()];
    window[position++ % window.size()] = byte;
  }
  match_left_ -= static_cast<unsigned>(out.size());
}

}  // namespace persistence
