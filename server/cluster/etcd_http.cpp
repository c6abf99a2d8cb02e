// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_http.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/parser.hpp>
#include <limits>
#include <optional>
#include <utility>

#include "core/number.h"
#include "core/printable.h"
#include "server/cluster/etcd_messages.h"

namespace server::cluster {
namespace {

namespace http = boost::beast::http;

constexpr uint32_t kHeaderBytesMax = 16 * 1024;
constexpr uint16_t kDefaultPort = 2379;

core::Error bad_url(std::string_view url) {
  return {fmt::format("ERR etcd endpoint '{}' is not http://HOST:PORT or https://HOST:PORT",
                      core::printable(url))};
}

bool is_host_name(std::string_view host) {
  constexpr size_t kHostMax = 253;  // RFC 1035
  return !host.empty() && host.size() <= kHostMax && std::ranges::all_of(host, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_';
  });
}

bool is_ipv6(std::string_view host) {
  return !host.empty() && host.find_first_not_of("0123456789abcdefABCDEF:.") == host.npos;
}

}  // namespace

std::string EtcdEndpoint::authority() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string EtcdEndpoint::url() const {
  return fmt::format("{}://{}", tls ? "https" : "http", authority());
}

core::Result<EtcdEndpoint> parse_etcd_endpoint(std::string_view url) {
  EtcdEndpoint endpoint;
  std::string_view rest = url;
  endpoint.tls = rest.starts_with("https://");
  if (!endpoint.tls && !rest.starts_with("http://")) return bad_url(url);
  rest.remove_prefix(rest.find("//") + 2);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  std::string_view port;
  if (rest.starts_with('[')) {
    const size_t end = rest.find(']');
    if (end == rest.npos) return bad_url(url);
    endpoint.host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
    if (!is_ipv6(endpoint.host)) return bad_url(url);
  } else {
    const size_t colon = std::min(rest.find(':'), rest.size());
    endpoint.host = rest.substr(0, colon);
    port = rest.substr(colon);
    if (!is_host_name(endpoint.host)) return bad_url(url);
  }
  endpoint.port = kDefaultPort;
  if (!port.empty()) {
    const auto number = core::parse_int64(port.substr(1));
    constexpr int64_t kPortMax = std::numeric_limits<uint16_t>::max();
    if (port.front() != ':' || !number || *number < 1 || *number > kPortMax) return bad_url(url);
    endpoint.port = static_cast<uint16_t>(*number);
  }
  return endpoint;
}

std::string etcd_request(const EtcdEndpoint& endpoint, std::string_view path,
                         std::string_view token, std::string_view body) {
  // A member without a leader then says so at once, and ends its watches.
  std::string text = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n"
      "Grpc-Metadata-hasleader: true\r\nContent-Length: {}\r\n",
      path, endpoint.authority(), body.size());
  if (!token.empty()) text += fmt::format("Authorization: {}\r\n", token);
  text += "\r\n";
  text += body;
  return text;
}

struct EtcdHttpReader::Parser {
  // A body as it comes. Beast's own reserves what the header promises.
  struct PlainBody {
    using value_type = std::string;

    class reader {
     public:
      template <bool kIsRequest, class Fields>
      reader(http::header<kIsRequest, Fields>&, value_type& body) : body_(body) {}
      void init(const boost::optional<uint64_t>&, boost::system::error_code& failed) {
        failed.clear();
      }
      template <class Buffers>
      size_t put(const Buffers& buffers, boost::system::error_code& failed) {
        size_t taken = 0;
        for (const auto buffer : boost::beast::buffers_range_ref(buffers)) {
          body_.append(static_cast<const char*>(buffer.data()), buffer.size());
          taken += buffer.size();
        }
        failed.clear();
        return taken;
      }
      void finish(boost::system::error_code& failed) { failed.clear(); }

     private:
      value_type& body_;
    };
  };

  Kind kind = Kind::kReply;
  http::response_parser<PlainBody> response;
  size_t complete_lines = 0;  // bytes of the body, with their ends
  std::string unread;         // what Beast has not taken yet, because a line is not complete

  std::string& body() { return response.get().body(); }
  bool is_stream() {
    return kind == Kind::kStream && response.is_header_done() &&
           response.get().result_int() == kHttpOk;
  }
  static core::Error fail(std::string_view fault) {
    return {fmt::format("ERR etcd's reply: {}", fault)};
  }
};

EtcdHttpReader::EtcdHttpReader(Kind kind) : parser_(std::make_unique<Parser>()) {
  parser_->kind = kind;
  parser_->response.eager(true);
  parser_->response.header_limit(kHeaderBytesMax);
  // A stream has no end; what it holds at a time is looked at by feed().
  if (kind == Kind::kStream) {
    parser_->response.body_limit(boost::none);
  } else {
    parser_->response.body_limit(kEtcdReplyBytesMax);
  }
}

EtcdHttpReader::~EtcdHttpReader() = default;

core::Result<> EtcdHttpReader::feed(std::string_view bytes) {
  parser_->unread += bytes;
  const size_t before = parser_->body().size();
  std::string_view rest = parser_->unread;
  while (!rest.empty() && !parser_->response.is_done()) {
    boost::system::error_code failed;
    const size_t taken =
        parser_->response.put(boost::asio::const_buffer(rest.data(), rest.size()), failed);
    rest.remove_prefix(taken);
    if (failed == http::error::need_more) break;
    if (failed) return parser_->fail(failed.message());
    if (taken == 0) break;
  }
  parser_->unread.erase(0, parser_->unread.size() - rest.size());
  const size_t line_end = std::string_view(parser_->body()).substr(before).rfind('\n');
  if (parser_->is_stream() && line_end != std::string_view::npos) {
    parser_->complete_lines = before + line_end + 1;
  }
  const size_t incomplete = parser_->body().size() - parser_->complete_lines;
  if (incomplete > kEtcdReplyBytesMax) return parser_->fail("too large");
  return {};
}

core::Result<> EtcdHttpReader::feed_end() {
  if (!parser_->response.is_header_done()) return parser_->fail("the connection was closed");
  boost::system::error_code failed;
  parser_->response.put_eof(failed);
  if (failed) return parser_->fail(failed.message());
  return {};
}

bool EtcdHttpReader::has_header() const {
  return parser_->response.is_header_done();
}

bool EtcdHttpReader::is_done() const {
  return parser_->response.is_done();
}

unsigned EtcdHttpReader::status() const {
  return parser_->response.get().result_int();
}

bool EtcdHttpReader::keeps_alive() const {
  return parser_->response.keep_alive() && parser_->unread.empty();
}

const std::string& EtcdHttpReader::body() const {
  return parser_->body();
}

std::vector<std::string> EtcdHttpReader::take_lines() {
  std::vector<std::string> lines;
  if (std::exchange(parser_->complete_lines, 0) == 0) return lines;
  std::string& body = parser_->body();
  size_t begin = 0;
  for (size_t end = body.find('\n'); end != body.npos; end = body.find('\n', begin)) {
    if (end > begin) lines.push_back(body.substr(begin, end - begin));
    begin = end + 1;
  }
  body.erase(0, begin);
  return lines;
}

}  // namespace server::cluster
