// SPDX-License-Identifier: MIT
//
// EtcdConnection: one TCP or TLS connection to an etcd member.
//
// Invariants: with TLS the member's certificate is verified, with its host name or address. Once
// closed, operations end with an error and none begins.
// Thread safety: none: it belongs to the thread that runs its io_context.
// Source: Boost.Asio 1.81, https://www.boost.org/doc/libs/1_81_0/doc/html/boost_asio.html.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "server/cluster/etcd_http.h"

namespace server::cluster {

class EtcdConnection : public std::enable_shared_from_this<EtcdConnection> {
 public:
  // tls: null for connections without. It must outlive the connection.
  EtcdConnection(boost::asio::io_context& io, boost::asio::ssl::context* tls);

  // All of it within `limit`, the search for the host's address excepted.
  boost::asio::awaitable<core::Result<>> connect(const EtcdEndpoint& endpoint,
                                                 std::chrono::milliseconds limit);
  boost::asio::awaitable<core::Result<>> write(std::string_view text);
  // Some bytes, valid until the next read; "" is the end.
  boost::asio::awaitable<core::Result<std::string_view>> read();

  void close();
  // Closes it then, unless disarm() comes first.
  void close_after(std::chrono::milliseconds time);
  void disarm();
  // False if the other side has closed it, or has sent something without being asked.
  bool is_idle();

 private:
  using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>;

  boost::asio::awaitable<core::Result<>> handshake(const EtcdEndpoint& endpoint);

  boost::asio::ip::tcp::socket socket_;
  boost::asio::ssl::context* tls_;
  std::optional<TlsStream> tls_stream_;
  boost::asio::steady_timer timer_;
  bool closed_ = false;
  std::array<char, 16 * 1024> buffer_;
};

}  // namespace server::cluster
