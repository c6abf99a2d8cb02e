// SPDX-License-Identifier: MIT
//
// RequestParser reads commands (arrays of bulk strings, or inline lines) from a buffer that the
// caller owns. It does not use sockets.
//
// Contract: `buffered` begins at the first byte not yet consumed. After EVERY call, whatever its
// status, the caller drops consumed() bytes. A call that returns kNeedMore also consumes empty
// requests ("*0", blank lines), so a flood of them cannot fill the buffer. Between calls the buffer
// may grow and move.
//
//   for (;; words.clear()) {
//     const auto status = parser.parse(pending, words);
//     pending.remove_prefix(parser.consumed());
//     if (status != RequestParser::Status::kRequest) break;
//     execute(words);
//   }
//
// Invariants: the result does not depend on how the bytes were divided among calls. State is kept
// as offsets, so a command that arrives in small pieces takes time linear in its size. Memory is
// allocated only for bytes that have arrived, never for announced ones. After kError the parser
// needs reset().
// Thread safety: none; one parser per connection. Not movable.
// Source: RESP (https://redis.io/docs/reference/protocol-spec/); texts and limits measured on Redis
// 7.0.15.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/inline_splitter.h"
#include "protocol/limits.h"

namespace protocol {

// Reasons of protocol_error().
namespace request_fault {
inline constexpr std::string_view kLongCount = "too big mbulk count string";
inline constexpr std::string_view kInvalidCount = "invalid multibulk length";
inline constexpr std::string_view kUnauthenticatedCount = "unauthenticated multibulk length";
inline constexpr std::string_view kLongSize = "too big bulk count string";
inline constexpr std::string_view kInvalidSize = "invalid bulk length";
inline constexpr std::string_view kUnauthenticatedSize = "unauthenticated bulk length";
inline constexpr std::string_view kLongLine = "too big inline request";
inline constexpr std::string_view kUnbalancedQuotes = "unbalanced quotes in request";
}  // namespace request_fault

class RequestParser {
 public:
  enum class Status { kNeedMore, kRequest, kError };

  explicit RequestParser(const Limits& limits = {});

  // With kRequest, appends the request's arguments, at least one, to `words`; otherwise leaves
  // `words` unchanged. The views are valid until the buffer changes. If words_are_in_buffer() is
  // false, they are also invalidated by the next call.
  Status parse(std::string_view buffered, std::vector<std::string_view>& words);

  // Returns whether all arguments of the last request are views of the buffer.
  bool words_are_in_buffer() const { return words_are_in_buffer_; }

  // Returns the number of bytes at the front of the buffer that the last parse() no longer needs.
  size_t consumed() const { return consumed_; }

  // The progress of a request that has arrived in part. Offsets count from its first byte.
  struct Partial {
    size_t parsed_bytes = 0;    // offset up to which the request was parsed
    size_t argument_bytes = 0;  // sum of the sizes of the complete arguments
    size_t needed_bytes = 0;    // end offset of the argument being received; 0 between arguments
  };
  Partial partial() const {
    const bool is_in_argument = phase_ == Phase::kBulkBody;
    return {position_, argument_bytes_,
            is_in_argument ? position_ + body_bytes_in_buffer() + kLineEndSize : 0};
  }

  // Supplies the bytes of one argument from outside of the buffer. `offset` is the position of the
  // argument's bytes in the request at the front of the buffer. The buffer does not contain these
  // bytes: it has the argument's line end at this position. `text` is used until the request is
  // complete, or until reset(). REQUIRES: the request is an array of bulk strings, and an argument
  // of text.size() bytes begins at `offset`.
  void set_apart(size_t offset, std::string_view text);

  // After kError, returns the error reply without its leading '-'. The connection should be closed
  // after the reply has been sent.
  std::string_view error() const { return error_; }

  // set_authenticated() and set_limits() take effect when the next header is read.
  void set_authenticated(bool authenticated);
  void set_limits(const Limits& limits);

  // Discards a partial request or an error.
  void reset();

 private:
  static constexpr size_t kLineEndSize = 2;
  static constexpr size_t kNothingApart = std::string_view::npos;
  enum class Phase : uint8_t { kStart, kCount, kBulkHeader, kBulkBody, kInline, kFailed };
  enum class Step : uint8_t { kContinue, kEmptyRequest, kRequest, kNeedMore, kError };
  using Words = std::vector<std::string_view>;
  struct Slice {
    size_t offset;
    size_t size_bytes;
  };

  size_t body_bytes_in_buffer() const { return position_ == apart_offset_ ? 0 : bulk_size_bytes_; }
  bool parse_whole_array(std::string_view buffered, Words& words);
  Status resume(std::string_view buffered, Words& words);
  Step step(std::string_view buffered, Words& words);
  Step read_count(std::string_view buffered);
  Step read_bulk_header(std::string_view buffered);
  Step read_bulk_body(std::string_view buffered, Words& words);
  Step read_inline(std::string_view buffered, Words& words);
  size_t find_line_end(std::string_view buffered, char terminator);
  Step accept_count(std::string_view text);
  Step accept_bulk_size(std::string_view text);
  Step fail(std::string_view reason);
  void publish(std::string_view buffered, Words& words);
  void start_request();
  void refresh_maxima();

  Phase phase_ = Phase::kStart;
  bool authenticated_ = true;
  // The limits of the fast path. Requests beyond them go to the slow path, which reports the error.
  size_t count_max_ = 0;
  size_t bulk_size_max_bytes_ = 0;
  bool words_are_in_buffer_ = true;
  size_t consumed_ = 0;

  // The state of a partial request, whose offsets are relative to its first byte.
  size_t position_ = 0;
  size_t searched_ = 0;
  size_t arguments_left_ = 0;
  size_t bulk_size_bytes_ = 0;
  size_t argument_bytes_ = 0;
  std::vector<Slice> slices_;
  size_t apart_offset_ = kNothingApart;
  std::string_view apart_text_;

  InlineSplitter inline_;
  std::string error_;
  Limits limits_;
};

}  // namespace protocol
