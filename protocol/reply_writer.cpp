// SPDX-License-Identifier: MIT
#include "protocol/reply_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace protocol {

void ReplyWriter::number(double value) {
  formatted_number(value, "{:.17g}");
}

void ReplyWriter::shortest_number(double value) {
  formatted_number(value, "{}");
}

void ReplyWriter::formatted_number(double value, const char* format) {
  // The buffer fits the longest text, such as "-1.2345678901234567e-308".
  char text[32];
  size_t size = 0;
  if (std::isnan(value)) {
    // NaN is written without a sign, as by Redis since 7.2. x86 computes 0/0 as a negative NaN,
    // which would be formatted as "-nan".
    size = std::string_view("nan").copy(text, sizeof text);
  } else if (std::isinf(value)) {
    size = std::string_view(value > 0 ? "inf" : "-inf").copy(text, sizeof text);
  } else {
    size = fmt::format_to_n(text, sizeof text, fmt::runtime(format), value).size;
  }
  if (resp3()) return line(',', {text, size});
  bulk({text, size});
}

void ReplyWriter::verbatim(std::string_view text, std::string_view format) {
  assert(format.size() == 3);
  if (!resp3()) return bulk(text);
  header('=', format.size() + 1 + text.size());
  buffer_.append(format);
  literal(":");
  buffer_.append(text);
  literal("\r\n");
}

void ReplyWriter::big_number(std::string_view digits) {
  if (resp3()) return line('(', digits);
  bulk(digits);
}

void ReplyWriter::line(char type, std::string_view text) {
  char* const out = buffer_.prepare(text.size() + 3);
  out[0] = type;
  char* const end = std::transform(text.begin(), text.end(), out + 1,
                                   [](char c) { return c == '\r' || c == '\n' ? ' ' : c; });
  end_line(out, end);
}

}  // namespace protocol
