// SPDX-License-Identifier: MIT
//
// ReplyWriter appends replies to an OutputBuffer, in RESP2 or RESP3 as the client requested.
//
// Invariants: one call writes one whole reply or the header of one aggregate. Types that RESP2
// lacks are converted as by Redis 7. No CR or LF of a caller reaches a simple or error line. So
// clients cannot forge a reply by line breaks in a name that is echoed.
// Thread safety: none; one writer per connection.
// Source: RESP3 (https://github.com/redis/redis-specifications/blob/master/protocol/RESP3.md).
#pragma once

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "protocol/output_buffer.h"

namespace protocol {

enum class RespVersion : uint8_t { kResp2 = 2, kResp3 = 3 };

class ReplyWriter {
 public:
  ReplyWriter(OutputBuffer& buffer, RespVersion version) : buffer_(buffer), version_(version) {}

  OutputBuffer& buffer() { return buffer_; }
  RespVersion version() const { return version_; }
  void set_version(RespVersion version) { version_ = version; }

  // Literal: a constant text of the program. The compiler checks that it has no line breaks.
  class Literal {
   public:
    template <size_t kSize>
    consteval Literal(const char (&text)[kSize]) : text_(text, kSize - 1) {  // NOLINT: a literal
      for (const char c : text_) {
        if (c == '\r' || c == '\n') throw "a line break would end the reply";
      }
    }
    std::string_view text() const { return text_; }

   private:
    std::string_view text_;
  };

  void ok() { literal("+OK\r\n"); }
  void status(Literal literal) {
    const std::string_view text = literal.text();
    char* const out = buffer_.prepare(text.size() + 3);
    out[0] = '+';
    end_line(out, std::copy(text.begin(), text.end(), out + 1));
  }
  void simple(std::string_view text) { line('+', text); }
  // Writes an error. `text` begins with its code: "ERR syntax error".
  void error(std::string_view text) { line('-', text); }

  void integer(int64_t value) {
    char* const out = buffer_.prepare(kHeaderSizeMax);
    out[0] = ':';
    // Integers of one digit have a fast path, because nearly all commands reply 0, 1 or a small
    // count.
    if (static_cast<uint64_t>(value) < 10) {
      out[1] = static_cast<char>('0' + value);
      return end_line(out, out + 2);
    }
    end_line(out, std::to_chars(out + 1, out + kHeaderSizeMax, value).ptr);
  }

  void bulk(std::string_view text) {
    if (!buffer_.reserve(text.size() + kHeaderSizeMax + 2)) [[unlikely]]
      return;
    header('$', text.size());
    char* const out = buffer_.prepare(text.size() + 2);
    if (!text.empty()) std::memcpy(out, text.data(), text.size());
    end_line(out, out + text.size());
  }

  void null() { resp3() ? literal("_\r\n") : literal("$-1\r\n"); }
  // Writes a null in place of an array. RESP2 has a separate null for this case.
  void null_array() { resp3() ? literal("_\r\n") : literal("*-1\r\n"); }

  // array(), map(), set() and push() write the header of an aggregate. The caller writes the
  // elements next; for a map, `count` keys each with its value.
  void array(size_t count) { header('*', count); }
  void map(size_t count) { resp3() ? header('%', count) : header('*', count * 2); }
  void set(size_t count) { header(resp3() ? '~' : '*', count); }
  // Writes the header of an attribute, which precedes the reply that it describes. Must be called
  // only if the version is RESP3.
  void attribute(size_t count) { header('|', count); }
  void push(size_t count) { header(resp3() ? '>' : '*', count); }

  void boolean(bool value) {
    if (!resp3()) return integer(value ? 1 : 0);
    value ? literal("#t\r\n") : literal("#f\r\n");
  }

  // Writes a double with seventeen significant digits, as Redis 7.0 does. That many digits
  // distinguish all doubles.
  void number(double value);
  // Writes a double with the fewest digits that parse to the same double: 0.01 and not
  // 0.01000000000000000021.
  void shortest_number(double value);
  // Writes a verbatim string. `format` has three characters, such as "txt" or "mkd". In RESP2 a
  // bulk string without the format is written.
  void verbatim(std::string_view text, std::string_view format);
  // Writes a number. `digits` is a decimal integer of any size, with an optional '-'.
  void big_number(std::string_view digits);

 private:
  // The maximum size of a header: a type byte, 20 characters of a 64-bit number and a line end.
  static constexpr size_t kHeaderSizeMax = 24;

  bool resp3() const { return version_ == RespVersion::kResp3; }

  void literal(std::string_view text) { buffer_.append(text); }

  void header(char type, size_t count) {
    char* const out = buffer_.prepare(kHeaderSizeMax);
    out[0] = type;
    if (count < 10) {
      out[1] = static_cast<char>('0' + count);
      return end_line(out, out + 2);
    }
    end_line(out, std::to_chars(out + 1, out + kHeaderSizeMax, count).ptr);
  }

  // Adds the line end to the line in [begin, end), and commits it.
  void end_line(const char* begin, char* end) {
    end[0] = '\r';
    end[1] = '\n';
    buffer_.commit(static_cast<size_t>(end + 2 - begin));
  }

  void line(char type, std::string_view text);
  void formatted_number(double value, const char* format);

  OutputBuffer& buffer_;
  RespVersion version_;
};

}  // namespace protocol
