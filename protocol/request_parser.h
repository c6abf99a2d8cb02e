// SPDX-License-Identifier: MIT
//
// RequestParser reads commands (arrays of bulk strings, or inline lines) out of a buffer that the
// caller owns, without touching a socket.
//
// Contract: `buffered` begins at the first byte not yet consumed. After EVERY call, whatever its
// status, the caller drops consumed() bytes: also kNeedMore consumes empty requests ("*0", blank
// lines), so a flood of them cannot fill the buffer. Between calls the buffer may grow and move.
//
//   for (;; words.clear()) {
//     const auto status = parser.parse(pending, words);
//     pending.remove_prefix(parser.consumed());
//     if (status != RequestParser::Status::kRequest) break;
//     execute(words);
//   }
//
// Invariants: what is accepted does not depend on how the bytes were cut. State is kept as offsets,
// so a command that trickles in costs time linear in its size; memory is taken only for bytes that
// have arrived, never for announced ones. After kError only reset() brings the parser back.
// Thread safety: none; one parser per connection. Not movable.
// Source: RESP (https://redis.io/docs/reference/protocol-spec/); texts and limits measured on
// Redis 7.0.15.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/inline_splitter.h"
#include "protocol/limits.h"

namespace protocol {

class RequestParser {
 public:
  enum class Status { kNeedMore, kRequest, kError };

  explicit RequestParser(const Limits& limits = {});

  // Of a request, appends its words, at least one, to `words`; else leaves them as they are. The
  // views live until the buffer changes; if not all are in it, until the next call.
  Status parse(std::string_view buffered, std::vector<std::string_view>& words);

  // Whether the last request's words are views of the buffer alone.
  bool words_are_in_buffer() const { return words_are_in_buffer_; }

  // Bytes the last call is done with.
  size_t consumed() const { return consumed_; }

  // The request that has arrived in part. All are counted from its first byte.
  struct Partial {
    size_t parsed_bytes = 0;    // headers and whole arguments
    size_t argument_bytes = 0;  // of those arguments
    size_t needed_bytes = 0;    // to the end of the argument that is arriving; 0 outside of one
  };
  Partial partial() const {
    const bool is_in_argument = phase_ == Phase::kBulkBody;
    return {position_, argument_bytes_,
            is_in_argument ? position_ + bulk_size_bytes_ + kLineEndSize : 0};
  }

  // After kError: the reply line without '-'. The connection should be closed behind it.
  std::string_view error() const { return error_; }

  // Both take effect at the next header read.
  void set_authenticated(bool authenticated);
  void set_limits(const Limits& limits);

  // Forgets a half-read request or an error.
  void reset();

 private:
  static constexpr size_t kLineEndSize = 2;
  enum class Phase : uint8_t { kStart, kCount, kBulkHeader, kBulkBody, kInline, kFailed };
  enum class Step : uint8_t { kContinue, kEmptyRequest, kRequest, kNeedMore, kError };
  using Words = std::vector<std::string_view>;
  struct Slice {
    size_t offset;
    size_t size_bytes;
  };

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
  // What the fast path takes; everything beyond is judged by the slow path.
  size_t count_max_ = 0;
  size_t bulk_size_max_bytes_ = 0;
  bool words_are_in_buffer_ = true;
  size_t consumed_ = 0;

  // Of a request that did not arrive whole; offsets count from its first byte.
  size_t position_ = 0;
  size_t searched_ = 0;
  size_t arguments_left_ = 0;
  size_t bulk_size_bytes_ = 0;
  size_t argument_bytes_ = 0;
  std::vector<Slice> slices_;

  InlineSplitter inline_;
  std::string error_;
  Limits limits_;
};

}  // namespace protocol
