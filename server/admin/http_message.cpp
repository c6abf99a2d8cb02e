// SPDX-License-Identifier: MIT
#include "server/admin/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <iterator>

namespace server::admin {
namespace {

constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string_view reason_of(unsigned status) {
  // Beast has the former reason of this status.
  if (status == 413) return "Content Too Large";
  const auto reason =
      boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(status));
  return {reason.data(), reason.size()};
}

}  // namespace

std::optional<std::string_view> HttpRequest::parameter(std::string_view name) const {
  const auto found = std::ranges::find(query, name, &std::pair<std::string, std::string>::first);
  if (found == query.end()) return std::nullopt;
  return found->second;
}

HttpResponse plain_response(unsigned status, std::string_view text, Headers headers) {
  return {.status = status, .body = fmt::format("{}\n", text), .headers = std::move(headers)};
}

std::string encode(const HttpResponse& response, Ending ending, bool is_head) {
  std::string bytes = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: {}\r\n"
      "Cache-Control: no-store\r\nContent-Security-Policy: {}\r\nX-Content-Type-Options: "
      "nosniff\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\n",
      response.status, reason_of(response.status), response.content_type, response.body.size(),
      ending == Ending::kKeepsAlive ? "keep-alive" : "close", kPolicy);
  for (const auto& [name, value] : response.headers) {
    fmt::format_to(std::back_inserter(bytes), "{}: {}\r\n", name, value);
  }
  bytes += "\r\n";
  if (!is_head) bytes += response.body;
  return bytes;
}

std::optional<std::string> decode_url(std::string_view text, UrlPart part) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && part == UrlPart::kQuery) c = ' ';
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      unsigned char byte = 0;
      const char* const end = text.data() + i + 3;
      if (std::from_chars(end - 2, end, byte, 16).ptr != end) return std::nullopt;
      c = static_cast<char>(byte);
      i += 2;
    }
    // A filter's key in a query may contain a zero byte, but a path may not.
    if (c == '\0' && part == UrlPart::kPath) return std::nullopt;
    decoded += c;
  }
  return decoded;
}

std::string encode_url(std::string_view bytes) {
  constexpr std::string_view kPlain = "-._~";
  std::string encoded;
  for (const char c : bytes) {
    const bool is_plain = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') ||
                          ('0' <= c && c <= '9') || kPlain.find(c) != std::string_view::npos;
    if (is_plain) {
      encoded += c;
    } else {
      fmt::format_to(std::back_inserter(encoded), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace server::admin
