// SPDX-License-Identifier: MIT
//
// AofLexer divides the bytes of one append log file into commands and annotations.
//
// Invariants: the buffer exceeds the largest item by at most 256 KiB or the item's size, whichever
// is more. It is never bigger than the file. An announced length is compared with the file's size
// before the announced bytes are read. Views and spans are valid until the next call of next(). The
// same bytes always give the same items.
// Thread safety: none.
// Source: docs/formats.md, "Append log".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "persistence/files/file_system.h"

namespace persistence {

// Reasons why the bytes of a file are wrong.
namespace aof_fault {
inline constexpr std::string_view kOpenAnnotation = "an annotation without end";
inline constexpr std::string_view kNoArguments = "a command without arguments";
inline constexpr std::string_view kTooManyArguments = "too many arguments";
inline constexpr std::string_view kLongArgument = "too long an argument";
inline constexpr std::string_view kLongNumber = "too long a number";
inline constexpr std::string_view kNoNumber = "a number expected";
inline constexpr std::string_view kNoLineEnd = "CR LF expected";
inline constexpr std::string_view kNoItem = "'*' or '#' expected";
inline constexpr std::string_view kNoArgument = "'$' expected";
}  // namespace aof_fault

class AofLexer {
 public:
  enum class Item : uint8_t {
    kCommand,
    kAnnotation,
    kEnd,
    kCut,    // the file ends within an item whose existing bytes are valid
    kWrong,  // the file contains an invalid byte
  };

  // Creates a lexer of the first `size_bytes` bytes of `file`, which must outlive the lexer.
  // REQUIRES: nothing has been read from `file`.
  AofLexer(InputFile& file, uint64_t size_bytes) : file_(file), size_bytes_(size_bytes) {}

  // Skips the next `count` bytes, such as a snapshot before the commands, and passes them to `see`
  // in pieces. REQUIRES: called before next().
  template <class See>
  core::Result<> skip(uint64_t count, See see);

  // Returns the next item. Must not be called again after kEnd, kCut, kWrong or an error.
  core::Result<Item> next();

  // Returns the arguments of a command, at least one.
  std::span<const std::string_view> arguments() const { return arguments_; }
  // Returns the annotation with its line end.
  std::string_view line() const { return bytes(); }
  // Returns the bytes of the item as they are in the file.
  std::string_view bytes() const { return {buffer_.data() + begin_, item_bytes_}; }
  // Returns the offset in the file at which the command or annotation begins.
  uint64_t offset() const { return offset_; }
  uint64_t end_offset() const { return offset_ + item_bytes_; }

  // After kWrong, returns the offset of the invalid byte.
  uint64_t wrong_offset() const { return offset_ + wrong_at_; }
  std::string_view reason() const { return reason_; }

 private:
  enum class Step : uint8_t { kDone, kMore, kWrong };

  Step lex();
  Step lex_annotation(std::string_view bytes);
  Step lex_command(std::string_view bytes);
  Step lex_length(std::string_view bytes, char marker, uint64_t& value);
  Step lex_line_end(std::string_view bytes);
  Step wrong(size_t at, std::string_view reason);
  core::Result<bool> read_more();
  uint64_t unread_bytes() const { return size_bytes_ - offset_ - (end_ - begin_); }

  InputFile& file_;
  uint64_t size_bytes_;

  std::vector<char> buffer_;
  // The start of the bytes that are read but not consumed, where the current item begins.
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t offset_ = 0;
  size_t item_bytes_ = 0;

  std::vector<std::string_view> arguments_;
  size_t position_ = 0;
  // The minimum size of the item, once the lexer knows it.
  uint64_t wanted_bytes_ = 0;
  size_t wrong_at_ = 0;
  std::string_view reason_;
};

template <class See>
core::Result<> AofLexer::skip(uint64_t count, See see) {
  while (count > 0) {
    auto more = read_more();
    if (!more) return more.error();
    if (!*more && end_ == begin_) break;
    item_bytes_ = static_cast<size_t>(std::min<uint64_t>(count, end_ - begin_));
    see(bytes());
    begin_ += item_bytes_;
    offset_ += item_bytes_;
    count -= item_bytes_;
    item_bytes_ = 0;
  }
  return {};
}

// Returns whether a command begins or ends a transaction.
bool is_aof_multi(std::span<const std::string_view> arguments);
bool is_aof_exec(std::span<const std::string_view> arguments);

}  // namespace persistence
