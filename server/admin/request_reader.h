// SPDX-License-Identifier: MIT
//
// RequestReader: parses the bytes of an HTTP connection into requests, one at a time.
//
// Invariants: when next() needs more bytes, the buffer has fewer than kHeaderBytesMax bytes. So the
// buffer is bounded by kHeaderBytesMax and the bytes of one feed(). Requests have no body. After an
// error no further bytes are parsed, and the caller must close the connection after the answer.
// Thread safety: none; one reader per connection.
// Source: RFC 9112; Boost.Beast 1.81, http::request_parser.
#pragma once

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "server/admin/http_message.h"

namespace server::admin {

class RequestReader {
 public:
  enum class Status : uint8_t { kNeedMore, kRequest, kError };
  static constexpr size_t kHeaderBytesMax = size_t{8} << 10;

  void feed(std::string_view bytes) { buffer_ += bytes; }
  // Parses the next request. Must be called repeatedly until it returns that it needs more bytes.
  Status next();
  // Returns the parsed request. Valid after next() returned kRequest.
  HttpRequest& request() { return request_; }
  // Returns the response that rejects the request. Valid after next() returned kError.
  const HttpResponse& refusal() const { return refusal_; }
  // Returns whether the rejected request is a HEAD, whose response has no body.
  bool refuses_head() const { return refuses_head_; }
  // Returns whether some bytes were received that next() has not returned as part of a request.
  bool is_inside_request() const { return parser_.has_value() || !buffer_.empty(); }

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::empty_body>;

  Status refuse(unsigned status, std::string_view text, Headers headers = {});
  Status refuse_body();
  Status take();

  std::optional<Parser> parser_;  // parser of the request that is being received
  std::string buffer_;
  HttpRequest request_;
  HttpResponse refusal_;
  bool refuses_head_ = false;
};

}  // namespace server::admin
