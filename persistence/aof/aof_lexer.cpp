// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_lexer.h"

#include <algorithm>
#include <cstring>

#include "persistence/aof/aof_format.h"
#include "protocol/arguments.h"

namespace persistence {
namespace {

// Maximum announced lengths and counts. Announcements allocate nothing, so the limits are generous:
// a file that this server wrote with other settings must load.
constexpr uint64_t kArgumentCountMax = INT32_MAX;
constexpr uint64_t kArgumentMaxBytes = uint64_t{64} << 30;

constexpr size_t kChunkBytes = size_t{256} << 10;
// The maximum number of digits of a length or count in the file. No valid length has more, and 64
// bits can hold such a number.
constexpr size_t kDigitsMax = 18;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

core::Result<AofLexer::Item> AofLexer::next() {
  begin_ += item_bytes_;
  offset_ += item_bytes_;
  item_bytes_ = 0;
  wanted_bytes_ = 0;
  for (;;) {
    const Step step = begin_ == end_ ? Step::kMore : lex();
    if (step == Step::kWrong) return Item::kWrong;
    if (step == Step::kDone) {
      return buffer_[begin_] == '#' ? Item::kAnnotation : Item::kCommand;
    }
    // If the file ends before the end of this command or annotation, the result is kCut. The
    // remaining bytes need not be read.
    if (wanted_bytes_ > size_bytes_ - offset_) return Item::kCut;
    auto more = read_more();
    if (!more) return more.error();
    if (!*more) return begin_ == end_ ? Item::kEnd : Item::kCut;
  }
}

AofLexer::Step AofLexer::lex() {
  const std::string_view bytes(buffer_.data() + begin_, end_ - begin_);
  arguments_.clear();
  position_ = 0;
  const Step step = bytes.front() == '#' ? lex_annotation(bytes) : lex_command(bytes);
  if (step == Step::kDone) item_bytes_ = position_;
  return step;
}

AofLexer::Step AofLexer::lex_annotation(std::string_view bytes) {
  const size_t end = bytes.substr(0, kAnnotationMaxBytes).find('\n');
  if (end != std::string_view::npos) {
    position_ = end + 1;
    return Step::kDone;
  }
  if (bytes.size() < kAnnotationMaxBytes) return Step::kMore;
  return wrong(kAnnotationMaxBytes, aof_fault::kOpenAnnotation);
}

AofLexer::Step AofLexer::lex_command(std::string_view bytes) {
  uint64_t count = 0;
  if (const Step step = lex_length(bytes, '*', count); step != Step::kDone) return step;
  if (count == 0) return wrong(1, aof_fault::kNoArguments);
  if (count > kArgumentCountMax) return wrong(1, aof_fault::kTooManyArguments);
  for (; count > 0; --count) {
    uint64_t size = 0;
    const size_t at = position_;
    if (const Step step = lex_length(bytes, '$', size); step != Step::kDone) return step;
    if (size > kArgumentMaxBytes) return wrong(at + 1, aof_fault::kLongArgument);
    wanted_bytes_ = position_ + size + 2;
    if (size > bytes.size() - position_) return Step::kMore;
    arguments_.push_back(bytes.substr(position_, size));
    position_ += size;
    if (const Step step = lex_line_end(bytes); step != Step::kDone) return step;
  }
  return Step::kDone;
}

AofLexer::Step AofLexer::lex_length(std::string_view bytes, char marker, uint64_t& value) {
  if (position_ == bytes.size()) return Step::kMore;
  if (bytes[position_] != marker) {
    return wrong(position_, marker == '*' ? aof_fault::kNoItem : aof_fault::kNoArgument);
  }
  const size_t first = ++position_;
  while (position_ < bytes.size() && is_digit(bytes[position_])) {
    if (position_ - first == kDigitsMax) return wrong(position_, aof_fault::kLongNumber);
    value = value * 10 + static_cast<uint64_t>(bytes[position_++] - '0');
  }
  if (position_ == bytes.size()) return Step::kMore;
  if (position_ == first) return wrong(position_, aof_fault::kNoNumber);
  return lex_line_end(bytes);
}

AofLexer::Step AofLexer::lex_line_end(std::string_view bytes) {
  for (const char expected : {'\r', '\n'}) {
    if (position_ == bytes.size()) return Step::kMore;
    if (bytes[position_] != expected) return wrong(position_, aof_fault::kNoLineEnd);
    ++position_;
  }
  return Step::kDone;
}

AofLexer::Step AofLexer::wrong(size_t at, std::string_view reason) {
  wrong_at_ = at;
  reason_ = reason;
  return Step::kWrong;
}

// Reads at least as many bytes as the buffer holds, or up to the end of the file. Each scan of an
// incomplete item starts again at its beginning. Doubling the data keeps the number of scans low.
core::Result<bool> AofLexer::read_more() {
  const size_t kept = end_ - begin_;
  const uint64_t wanted = wanted_bytes_ > kept ? wanted_bytes_ - kept : 0;
  const uint64_t count = std::min(std::max<uint64_t>({kChunkBytes, kept, wanted}), unread_bytes());
  if (count == 0) return false;
  if (kept > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, kept);
  buffer_.resize(std::max(buffer_.size(), kept + static_cast<size_t>(count)));
  begin_ = 0;
  end_ = kept;
  auto got = file_.read(std::span(buffer_).subspan(kept, static_cast<size_t>(count)));
  if (!got) return got.error();
  end_ += *got;
  // The file became shorter while it was being read. The lexer then treats the end of the bytes
  // read as the end of the file.
  if (*got < count) size_bytes_ = offset_ + (end_ - begin_);
  return *got > 0;
}

bool is_aof_multi(std::span<const std::string_view> arguments) {
  return arguments.size() == 1 && protocol::equals_ignore_case(arguments[0], "MULTI");
}

bool is_aof_exec(std::span<const std::string_view> arguments) {
  return arguments.size() == 1 && protocol::equals_ignore_case(arguments[0], "EXEC");
}

}  // namespace persistence
