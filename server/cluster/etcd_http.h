// SPDX-License-Identifier: MIT
//
// HTTP as etcd's gateway speaks it, without sockets: the text of a request, a reader of replies.
//
// Invariants: a reply's header is at most 16 KiB, its body kEtcdReplyBytesMax; what is larger or
// no HTTP is an error, after which the reader takes nothing more.
// Thread safety: none; one reader belongs to one reply.
// Source: RFC 9112; https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace server::cluster {

inline constexpr unsigned kHttpOk = 200;

struct EtcdEndpoint {
  std::string host;  // of an IPv6 address without the brackets
  uint16_t port = 0;
  bool tls = false;

  bool operator==(const EtcdEndpoint&) const = default;
  std::string authority() const;  // "host:port", with the brackets
  std::string url() const;
};

// "http://HOST:PORT", a final "/" allowed; the port is 2379 if none is given.
// Errors: the URL and what it should be.
core::Result<EtcdEndpoint> parse_etcd_endpoint(std::string_view url);

// `path` as in "/v3/kv/range". An empty token stands for none.
std::string etcd_request(const EtcdEndpoint& endpoint, std::string_view path,
                         std::string_view token, std::string_view body);

// A whole reply, or the messages of one that does not end.
class EtcdHttpReader {
 public:
  enum class Kind { kReply, kStream };

  explicit EtcdHttpReader(Kind kind);
  ~EtcdHttpReader();

  // Errors: no HTTP, or too large. REQUIRES: no error before, and not is_done().
  core::Result<> feed(std::string_view bytes);
  // The connection has ended: a body without a length is whole now, all else is torn.
  core::Result<> feed_end();

  bool has_header() const;
  bool is_done() const;
  unsigned status() const;   // REQUIRES: has_header()
  bool keeps_alive() const;  // REQUIRES: is_done()
  // kReply: the body. kStream: what has come of the line that is not complete.
  const std::string& body() const;
  // kStream: the lines that have become complete since the last call, without their ends.
  std::vector<std::string> take_lines();

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace server::cluster
