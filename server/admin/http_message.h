// SPDX-License-Identifier: MIT
//
// HttpRequest and HttpResponse: the requests and answers of the admin port.
//
// Invariants: a request's path and query are decoded; the path holds no zero byte. Every response
// forbids frames, caching, and all scripts except files of the admin port.
// Thread safety: each object belongs to one thread.
// Source: RFC 9110, RFC 9112; Content Security Policy, https://www.w3.org/TR/CSP3/.
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
  std::string path;  // path of the URL, which starts with a slash
  std::vector<std::pair<std::string, std::string>> query;
  std::string host;           // value of the Host header
  std::string authorization;  // value of the Authorization header

  // True if the request has kWriteHeader. A page of another origin cannot send this header, so the
  // user intended the write.
  bool declares_write = false;
  bool keeps_alive = false;

  // Returns the first query parameter of that name.
  std::optional<std::string_view> parameter(std::string_view name) const;
};

using Headers = std::vector<std::pair<std::string_view, std::string>>;

struct HttpResponse {
  unsigned status = 200;
  std::string_view content_type = "text/plain; charset=utf-8";
  std::string body{};
  // Additional headers of this response. encode() adds the headers that every response has.
  Headers headers{};
  // If `later` is set, it is called with a function that accepts the response at any time, from any
  // thread. The other members are then ignored.
  using Deliver = std::function<void(HttpResponse)>;
  std::function<void(Deliver)> later{};
};

// The texts and headers of responses with status 405.
inline constexpr std::string_view kOnlyReadText = "This page can only be read";
inline const std::pair<std::string_view, std::string> kAllowedMethods{"Allow", "GET, HEAD"};
inline constexpr std::string_view kOnlyWriteText = "This page only writes: use POST";
inline const std::pair<std::string_view, std::string> kWriteMethods{"Allow", "POST"};
inline constexpr std::string_view kWriteHeader = "X-Bloomery-Write";

// Returns a response with one line of text.
HttpResponse plain_response(unsigned status, std::string_view text, Headers headers = {});

enum class Ending : uint8_t { kKeepsAlive, kCloses };
// Returns the bytes of a response. Omits the body if `is_head` is true, which means that the
// request was HEAD.
std::string encode(const HttpResponse& response, Ending ending, bool is_head);

// Decodes a part of a URL. Returns nullopt if an escape is not % and two hexadecimal digits, or if
// a path contains a zero byte. A plus means a space in a query only.
enum class UrlPart : uint8_t { kPath, kQuery };
std::optional<std::string> decode_url(std::string_view text, UrlPart part);
// Encodes all characters except letters, digits and `-._~` as %HH.
std::string encode_url(std::string_view bytes);

}  // namespace server::admin
