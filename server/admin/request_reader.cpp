// SPDX-License-Identifier: MIT
#include "server/admin/request_reader.h"

#include <boost/asio/buffer.hpp>
#include <limits>
#include <utility>

namespace server::admin {
namespace {

namespace http = boost::beast::http;

// Parses the target of a request. Returns nullopt unless the target is a path with an optional
// query that can be decoded.
std::optional<HttpRequest> parse_target(std::string_view target) {
  HttpRequest request;
  if (!target.starts_with('/')) return std::nullopt;
  const size_t mark = target.find('?');
  auto path = decode_url(target.substr(0, mark), UrlPart::kPath);
  if (!path) return std::nullopt;
  request.path = std::move(*path);
  std::string_view rest =
      mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    auto name = decode_url(pair.substr(0, equals), UrlPart::kQuery);
    auto value = decode_url(pair.substr(std::min(pair.size(), equals + 1)), UrlPart::kQuery);
    if (!name || !value) return std::nullopt;
    request.query.emplace_back(std::move(*name), std::move(*value));
  }
  return request;
}

}  // namespace

RequestReader::Status RequestReader::refuse(unsigned status, std::string_view text,
                                            Headers headers) {
  refuses_head_ = parser_.has_value() && parser_->get().method() == http::verb::head;
  buffer_.clear();
  parser_.reset();
  refusal_ = plain_response(status, text, std::move(headers));
  return Status::kError;
}

// A body is rejected with status 413 for the methods that some path accepts. For all other methods
// the answer is status 405, so the error is about the method.
RequestReader::Status RequestReader::refuse_body() {
  const http::verb method = parser_->get().method();
  const bool is_known =
      method == http::verb::get || method == http::verb::head || method == http::verb::post;
  return is_known ? refuse(413, "A request must not have a body")
                  : refuse(405, kOnlyReadText, {kAllowedMethods});
}

RequestReader::Status RequestReader::next() {
  if (refusal_.status >= 400) return Status::kError;
  if (buffer_.empty()) return Status::kNeedMore;
  if (!parser_) {
    parser_.emplace().header_limit(static_cast<uint32_t>(kHeaderBytesMax));
    // A request with a body is rejected as soon as its header announces the body.
    parser_->body_limit(0);
  }
  auto& parser = *parser_;
  boost::system::error_code error;
  const size_t taken = parser.put(boost::asio::const_buffer(buffer_.data(), buffer_.size()), error);
  buffer_.erase(0, taken);
  if (error == http::error::need_more) {
    if (buffer_.size() >= kHeaderBytesMax) return refuse(431, "The request's header is too long");
    return Status::kNeedMore;
  }
  if (error == http::error::header_limit) {
    return refuse(431, "The request's header is too long");
  }
  if (error == http::error::body_limit || error == http::error::unexpected_body) {
    return refuse_body();
  }
  if (error == http::error::bad_version) return refuse(505, "Only HTTP/1.1 is spoken here");
  if (error) return refuse(400, "This is no HTTP request");
  if (!parser.is_header_done()) return Status::kNeedMore;
  if (!parser.is_done()) return refuse_body();
  return take();
}

RequestReader::Status RequestReader::take() {
  const auto& message = parser_->get();
  const auto field = [&](http::field name) {
    const auto value = message[name];
    return std::string(value.data(), value.size());
  };
  auto request = parse_target({message.target().data(), message.target().size()});
  if (!request) return refuse(400, "The request's target is no path");
  if (message.count(http::field::host) > 1) return refuse(400, "The request has two hosts");
  request_ = std::move(*request);
  request_.method = std::string(message.method_string().data(), message.method_string().size());
  request_.host = field(http::field::host);
  request_.authorization = field(http::field::authorization);
  request_.declares_write = message.count({kWriteHeader.data(), kWriteHeader.size()}) > 0;
  request_.keeps_alive = message.keep_alive();
  parser_.reset();
  return Status::kRequest;
}

}  // namespace server::admin
