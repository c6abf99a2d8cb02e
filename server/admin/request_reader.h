// SPDX-License-Identifier: MIT
//
// RequestReader: cuts the requests out of an HTTP connection's bytes, one after the other.
//
// Invariants: the kept bytes are bounded by kHeaderBytesMax; requests have no body. After an error
// nothing more is read: the caller must close the connection after the answer.
// Thread safety: none; one reader per connection.
// Source: RFC 9112; Boost.Beast 1.81, http::request_parser.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/admin/http_message.h"

namespace server::admin {

class RequestReader {
 public:
  enum class Status : uint8_t { kNeedMore, kRequest, kError };
  static constexpr size_t kHeaderBytesMax = size_t{8} << 10;

  RequestReader();
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  void feed(std::string_view bytes) { buffer_ += bytes; }
  // To be called until it needs more bytes.
  Status next();
  // After kRequest.
  HttpRequest& request() { return request_; }
  // After kError: the answer.
  const HttpResponse& refusal() const { return refusal_; }
  // Whether a request has begun that is not whole.
  bool is_inside_request() const { return parser_ != nullptr || !buffer_.empty(); }

 private:
  struct Parser;

  Status refuse(unsigned status, std::string_view text);
  Status refuse_body();
  Status take();

  std::unique_ptr<Parser> parser_;  // of the request that is being read
  std::string buffer_;
  HttpRequest request_;
  HttpResponse refusal_;
};

}  // namespace server::admin
