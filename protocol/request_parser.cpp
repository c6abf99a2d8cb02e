// SPDX-License-Identifier: MIT
#include "protocol/request_parser.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/number.h"
#include "protocol/error_texts.h"

namespace protocol {
namespace {

// The minimum size of an argument, which is that of an empty bulk string: "$0\r\n\r\n".
constexpr size_t kArgumentSizeMin = 6;
// Limit on the number of slices whose memory is kept for the next request. A slice is the offset
// and the size of one argument.
constexpr size_t kSlicesKept = 256;

struct Length {
  // The position after the line. Null if the line is incomplete or unusual; the slow path,
  // resume(), must then parse the request.
  const char* next;
  size_t value;
};

uint32_t load32(const char* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Reads the digits after the type byte at `line`, at most nine, and the line end. REQUIRES: at
// least two bytes at `line`.
[[gnu::noinline]] Length read_long_length(const char* line, const char* end) {
  constexpr ptrdiff_t kDigitsMax = 9;
  const char* const first = line + 1;
  if (*first < '1' || *first > '9') return {nullptr, 0};
  const char* const last = end - first > kDigitsMax ? first + kDigitsMax : end;
  const char* at = first;
  size_t value = 0;
  for (; at != last && *at >= '0' && *at <= '9'; ++at) {
    value = value * 10 + static_cast<size_t>(*at - '0');
  }
  if (end - at < 2 || at[0] != '\r' || at[1] != '\n') return {nullptr, 0};
  return {at + 2, value};
}

// Reads "<type><digits>\r\n". Nearly all lengths have one or two digits, so these have a fast path.
// A line with one digit is compared as one word.
inline Length read_length(const char* line, const char* end, char type) {
  if (end - line < static_cast<ptrdiff_t>(kArgumentSizeMin)) return {nullptr, 0};
  const char mask1[] = {'\xff', 0, '\xff', '\xff'};
  const char form1[] = {type, 0, '\r', '\n'};
  const unsigned tens = static_cast<unsigned char>(line[1]) - unsigned{'0'};
  if ((load32(line) & load32(mask1)) == load32(form1) && tens <= 9) return {line + 4, tens};
  if (line[0] != type) return {nullptr, 0};
  const unsigned ones = static_cast<unsigned char>(line[2]) - unsigned{'0'};
  if (tens - 1 <= 8 && ones <= 9 && line[3] == '\r' && line[4] == '\n') {
    return {line + 5, tens * 10 + ones};
  }
  return read_long_length(line, end);
}

}  // namespace

RequestParser::RequestParser(const Limits& limits) : limits_(limits) {
  refresh_maxima();
}

RequestParser::Status RequestParser::parse(std::string_view buffered,
                                           std::vector<std::string_view>& words) {
  if (phase_ == Phase::kStart && parse_whole_array(buffered, words)) [[likely]]
    return Status::kRequest;
  return resume(buffered, words);
}

// This is the hot path: it parses a complete command in one pass. Returns false, without any
// effect, for anything unusual, invalid or incomplete; resume() then starts over. That happens at
// most once per request.
bool RequestParser::parse_whole_array(std::string_view buffered, Words& words) {
  const char* const end = buffered.data() + buffered.size();
  const Length count = read_length(buffered.data(), end, '*');
  if (count.next == nullptr || count.value - 1 >= count_max_) return false;
  const size_t words_before = words.size();
  const char* at = count.next;
  for (size_t left = count.value; left > 0; --left) {
    const Length bulk = read_length(at, end, '$');
    const bool is_here = bulk.next != nullptr && bulk.value <= bulk_size_max_bytes_ &&
                         static_cast<size_t>(end - bulk.next) >= bulk.value + kLineEndSize;
    if (!is_here) {
      words.resize(words_before);
      return false;
    }
    words.emplace_back(bulk.next, bulk.value);
    at = bulk.next + bulk.value + kLineEndSize;
  }
  words_are_in_buffer_ = true;
  consumed_ = static_cast<size_t>(at - buffered.data());
  return true;
}

RequestParser::Status RequestParser::resume(std::string_view buffered, Words& words) {
  assert(buffered.size() >= position_);
  size_t skipped = 0;
  if (phase_ == Phase::kStart) inline_.release_if_large();
  for (;;) {
    switch (step(buffered, words)) {
      case Step::kContinue:
        break;
      case Step::kEmptyRequest:
        skipped += position_;
        buffered.remove_prefix(position_);
        start_request();
        break;
      case Step::kRequest:
        consumed_ = skipped + position_;
        start_request();
        return Status::kRequest;
      case Step::kNeedMore:
        consumed_ = skipped;
        return Status::kNeedMore;
      case Step::kError:
        consumed_ = skipped;
        return Status::kError;
    }
  }
}

RequestParser::Step RequestParser::step(std::string_view buffered, Words& words) {
  switch (phase_) {
    case Phase::kStart:
      if (buffered.empty()) return Step::kNeedMore;
      phase_ = buffered.front() == '*' ? Phase::kCount : Phase::kInline;
      return Step::kContinue;
    case Phase::kCount:
      return read_count(buffered);
    case Phase::kBulkHeader:
      return read_bulk_header(buffered);
    case Phase::kBulkBody:
      return read_bulk_body(buffered, words);
    case Phase::kInline:
      return read_inline(buffered, words);
    case Phase::kFailed:
      break;
  }
  return Step::kError;
}

// Returns the offset of the terminator of the line at position_; npos if it has not arrived yet.
size_t RequestParser::find_line_end(std::string_view buffered, char terminator) {
  const size_t found = buffered.find(terminator, std::max(searched_, position_));
  searched_ = std::min(found, buffered.size());
  return found;
}

RequestParser::Step RequestParser::read_count(std::string_view buffered) {
  const size_t line_end = find_line_end(buffered, '\r');
  if (searched_ - position_ > limits_.inline_size_max_bytes) {
    return fail(request_fault::kLongCount);
  }
  // As in Redis, the byte after '\r' must have arrived but is not checked.
  if (line_end == std::string_view::npos || buffered.size() - line_end < kLineEndSize) {
    return Step::kNeedMore;
  }
  const std::string_view text = buffered.substr(position_ + 1, line_end - position_ - 1);
  position_ = line_end + kLineEndSize;
  return accept_count(text);
}

RequestParser::Step RequestParser::accept_count(std::string_view text) {
  const auto count = core::parse_int64(text);
  if (!count || (*count > 0 && static_cast<size_t>(*count) > limits_.argument_count_max)) {
    return fail(request_fault::kInvalidCount);
  }
  if (*count <= 0) return Step::kEmptyRequest;
  arguments_left_ = static_cast<size_t>(*count);
  if (!authenticated_ && arguments_left_ > limits_.unauthenticated_argument_count_max) {
    return fail(request_fault::kUnauthenticatedCount);
  }
  phase_ = Phase::kBulkHeader;
  return Step::kContinue;
}

RequestParser::Step RequestParser::read_bulk_header(std::string_view buffered) {
  const size_t line_end = find_line_end(buffered, '\r');
  if (searched_ - position_ > limits_.inline_size_max_bytes) {
    return fail(request_fault::kLongSize);
  }
  if (line_end == std::string_view::npos || buffered.size() - line_end < kLineEndSize) {
    return Step::kNeedMore;
  }
  const char type = buffered[position_];
  if (type != '$') {
    // A line break is replaced, because the error reply must not contain one.
    const char shown = type == '\r' || type == '\n' ? ' ' : type;
    return fail(std::string("expected '$', got '") + shown + '\'');
  }
  const std::string_view text = buffered.substr(position_ + 1, line_end - position_ - 1);
  position_ = line_end + kLineEndSize;
  return accept_bulk_size(text);
}

RequestParser::Step RequestParser::accept_bulk_size(std::string_view text) {
  const auto size = core::parse_int64(text);
  if (!size || *size < 0 || static_cast<size_t>(*size) > limits_.bulk_size_max_bytes) {
    return fail(request_fault::kInvalidSize);
  }
  bulk_size_bytes_ = static_cast<size_t>(*size);
  if (!authenticated_ && bulk_size_bytes_ > limits_.unauthenticated_bulk_size_max_bytes) {
    return fail(request_fault::kUnauthenticatedSize);
  }
  phase_ = Phase::kBulkBody;
  return Step::kContinue;
}

RequestParser::Step RequestParser::read_bulk_body(std::string_view buffered, Words& words) {
  const size_t here_bytes = body_bytes_in_buffer();
  if (buffered.size() - position_ < here_bytes + kLineEndSize) return Step::kNeedMore;
  slices_.push_back({position_, bulk_size_bytes_});
  argument_bytes_ += bulk_size_bytes_;
  // As in Redis, the two bytes after the string are not checked.
  position_ += here_bytes + kLineEndSize;
  if (--arguments_left_ > 0) {
    phase_ = Phase::kBulkHeader;
    return Step::kContinue;
  }
  publish(buffered, words);
  return Step::kRequest;
}

RequestParser::Step RequestParser::read_inline(std::string_view buffered, Words& words) {
  const size_t line_end = find_line_end(buffered, '\n');
  if (searched_ > limits_.inline_size_max_bytes) return fail(request_fault::kLongLine);
  if (line_end == std::string_view::npos) return Step::kNeedMore;
  std::string_view line = buffered.substr(0, line_end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  position_ = line_end + 1;
  if (!inline_.split(line)) return fail(request_fault::kUnbalancedQuotes);
  const auto arguments = inline_.arguments();
  words.insert(words.end(), arguments.begin(), arguments.end());
  words_are_in_buffer_ = !inline_.has_quoted();
  return arguments.empty() ? Step::kEmptyRequest : Step::kRequest;
}

// Converts the offsets of a complete request into views.
void RequestParser::publish(std::string_view buffered, Words& words) {
  for (const Slice& slice : slices_) {
    // No two arguments begin at the same offset, because a header precedes each argument.
    const bool is_apart = slice.offset == apart_offset_;
    words.push_back(is_apart ? apart_text_ : buffered.substr(slice.offset, slice.size_bytes));
  }
  words_are_in_buffer_ = apart_offset_ == kNothingApart;
}

void RequestParser::set_apart(size_t offset, std::string_view text) {
  assert(phase_ != Phase::kBulkBody || position_ != offset || bulk_size_bytes_ == text.size());
  // The fast path does not support arguments outside of the buffer, so resume() parses this
  // request.
  if (phase_ == Phase::kStart) phase_ = Phase::kCount;
  apart_offset_ = offset;
  apart_text_ = text;
}

RequestParser::Step RequestParser::fail(std::string_view reason) {
  phase_ = Phase::kFailed;
  error_ = protocol_error(reason);
  return Step::kError;
}

// Resets the state of both kinds of requests, arrays and inline requests.
void RequestParser::start_request() {
  phase_ = Phase::kStart;
  position_ = 0;
  searched_ = 0;
  arguments_left_ = 0;
  bulk_size_bytes_ = 0;
  argument_bytes_ = 0;
  slices_.clear();
  apart_offset_ = kNothingApart;
  if (slices_.capacity() > kSlicesKept) std::vector<Slice>().swap(slices_);
}

void RequestParser::reset() {
  start_request();
  consumed_ = 0;
  error_.clear();
}

void RequestParser::set_authenticated(bool authenticated) {
  authenticated_ = authenticated;
  refresh_maxima();
}

void RequestParser::set_limits(const Limits& limits) {
  limits_ = limits;
  refresh_maxima();
}

void RequestParser::refresh_maxima() {
  count_max_ = limits_.argument_count_max;
  bulk_size_max_bytes_ = limits_.bulk_size_max_bytes;
  if (authenticated_) return;
  count_max_ = std::min(count_max_, limits_.unauthenticated_argument_count_max);
  bulk_size_max_bytes_ =
      std::min(bulk_size_max_bytes_, limits_.unauthenticated_bulk_size_max_bytes);
}

}  // namespace protocol
