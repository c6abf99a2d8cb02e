// SPDX-License-Identifier: MIT
//
// HttpRequest and HttpResponse: what the admin port is asked and what it answers.
//
// Invariants: a request's path and query are decoded; the path holds no zero byte. Every response
// forbids scripts, frames and caches that the admin port's own page does not need. Thread safety:
// values. Source: RFC 9110, RFC 9112; Content Security Policy, https://www.w3.org/TR/CSP3/.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace server::admin {

struct HttpRequest {
  std::string method;
  std::string path;  // from its first slash
  std::vector<std::pair<std::string, std::string>> query;
  std::string host;           // as sent
  std::string authorization;  // as sent
  // The header that a page of another origin cannot send: a request with it is the user's wish.
  bool declares_write = false;
  bool keeps_alive = false;

  // Returns the first parameter of that name.
  std::optional<std::string_view> parameter(std::string_view name) const;
};

struct HttpResponse {
  unsigned status = 200;
  std::string_view content_type = "text/plain; charset=utf-8";
  std::string body{};
  // Names and values; the usual ones are added by encode().
  std::vector<std::pair<std::string_view, std::string>> headers{};
  // Unless empty: the response is what this function calls back with, from any thread, later. The
  // other members are not sent then.
  using Deliver = std::function<void(HttpResponse)>;
  std::function<void(Deliver)> later{};
};

// Responses with status 405.
inline constexpr std::string_view kOnlyReadText = "This page can only be read";
inline const std::pair<std::string_view, std::string> kAllowedMethods{"Allow", "GET, HEAD"};
inline constexpr std::string_view kOnlyWriteText = "This page only writes: use POST";
inline const std::pair<std::string_view, std::string> kWriteMethods{"Allow", "POST"};
inline constexpr std::string_view kWriteHeader = "X-Bloomery-Write";

// A line of text.
HttpResponse plain_response(unsigned status, std::string_view text);

enum class Ending : uint8_t { kKeepsAlive, kCloses };
// The bytes of a response; without its body, if it answers HEAD.
std::string encode(const HttpResponse& response, Ending ending, bool is_head);

// Nothing if an escape is incomplete, or a path holds a zero byte. A plus is a space in a query
// only.
enum class UrlPart : uint8_t { kPath, kQuery };
std::optional<std::string> decode_url(std::string_view text, UrlPart part);
// Encodes all characters except letters, digits and `-._~` as %HH.
std::string encode_url(std::string_view bytes);

}  // namespace server::admin
