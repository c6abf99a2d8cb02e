// SPDX-License-Identifier: MIT
//
// AofLexer cuts the bytes of one append log file into commands and annotations.
//
// Invariants: at most twice the largest item is kept in memory, and never more than the file has
// left: what a length announces is compared with the file's size first. Views and spans live until
// the next call of next(). Whatever the bytes, the same ones yield the same items.
// Thread safety: none.
// Source: docs/formats.md, "Append log".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "persistence/files/file_system.h"

namespace persistence {

// What an item may announce. Nothing is reserved on its word, so these are generous: a file that
// this server wrote under other settings must load.
struct AofLimits {
  uint64_t argument_count_max = INT32_MAX;
  uint64_t argument_max_bytes = uint64_t{64} << 30;
};

class AofLexer {
 public:
  enum class Item : uint8_t {
    kCommand,
    kAnnotation,
    kEnd,
    kCut,    // the end comes inside of an item that is sound so far
    kWrong,  // a byte that cannot stand where it stands
  };

  // `file` is at its start and `size_bytes` of it are read. It must outlive the lexer.
  AofLexer(InputFile& file, uint64_t size_bytes, const AofLimits& limits)
      : file_(file), size_bytes_(size_bytes), limits_(limits) {}

  // Passes over bytes that are not for the lexer and hands them to `see` in pieces.
  // REQUIRES: called before next().
  template <class See>
  core::Result<> skip(uint64_t count, See see);

  // After kEnd, kCut, kWrong and an error there is no next one.
  core::Result<Item> next();

  // Of a command, at least one.
  std::span<const std::string_view> arguments() const { return arguments_; }
  // Of an annotation, line end included.
  std::string_view line() const { return bytes(); }
  // The item as it stands in the file.
  std::string_view bytes() const { return {buffer_.data() + begin_, item_bytes_}; }
  // Where in the file the item begins.
  uint64_t offset() const { return offset_; }
  uint64_t end_offset() const { return offset_ + item_bytes_; }

  // After kWrong.
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
  const AofLimits limits_;

  std::vector<char> buffer_;
  // The part of the buffer that is read but not yet passed; begins with the item.
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t offset_ = 0;
  size_t item_bytes_ = 0;

  std::vector<std::string_view> arguments_;
  size_t position_ = 0;
  // How many bytes from the item's start on it certainly has, once that is known.
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

}  // namespace persistence
