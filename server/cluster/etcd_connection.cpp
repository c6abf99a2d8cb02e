// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_connection.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <tuple>
#include <vector>

namespace server::cluster {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr auto kAsValue = asio::as_tuple(asio::use_awaitable);

core::Error failure(std::string_view what, const boost::system::error_code& error) {
  return {fmt::format("ERR {}: {}", what, error.message())};
}

}  // namespace

EtcdConnection::EtcdConnection(asio::io_context& io, asio::ssl::context* tls)
    : socket_(io), tls_(tls), timer_(io) {}

asio::awaitable<core::Result<>> EtcdConnection::connect(const EtcdEndpoint& endpoint,
                                                        std::chrono::milliseconds limit) {
  close_after(limit);
  std::vector<tcp::endpoint> addresses;
  boost::system::error_code failed;
  const auto address = asio::ip::make_address(endpoint.host, failed);
  if (!failed) {
    addresses.emplace_back(address, endpoint.port);
  } else {
    tcp::resolver resolver(socket_.get_executor());
    const auto [error, found] =
        co_await resolver.async_resolve(endpoint.host, std::to_string(endpoint.port), kAsValue);
    if (error) co_return failure("address", error);
    for (const auto& entry : found) addresses.push_back(entry.endpoint());
  }
  if (closed_) co_return core::Error{"ERR connect: timed out"};
  const auto [error, connected] = co_await asio::async_connect(socket_, addresses, kAsValue);
  if (closed_) co_return core::Error{"ERR connect: timed out"};
  if (error) co_return failure("connect", error);
  socket_.set_option(tcp::no_delay(true), failed);
  if (endpoint.tls) {
    const auto secured = co_await handshake(endpoint);
    if (!secured) co_return secured.error();
  }
  disarm();
  co_return core::Result<>();
}

asio::awaitable<core::Result<>> EtcdConnection::handshake(const EtcdEndpoint& endpoint) {
  tls_stream_.emplace(socket_, *tls_);
  boost::system::error_code failed;
  (void)asio::ip::make_address(endpoint.host, failed);
  const bool is_name = static_cast<bool>(failed);
  if (is_name) SSL_set_tlsext_host_name(tls_stream_->native_handle(), endpoint.host.c_str());
  tls_stream_->set_verify_callback(asio::ssl::host_name_verification(endpoint.host), failed);
  const auto [error] =
      co_await tls_stream_->async_handshake(asio::ssl::stream_base::client, kAsValue);
  if (closed_) co_return core::Error{"ERR TLS: timed out"};
  if (error) co_return failure("TLS", error);
  co_return core::Result<>();
}

asio::awaitable<core::Result<>> EtcdConnection::write(std::string_view text) {
  if (closed_) co_return core::Error{"ERR write: closed"};
  const asio::const_buffer bytes(text.data(), text.size());
  boost::system::error_code error;
  if (tls_stream_) {
    const auto [failed, size] = co_await asio::async_write(*tls_stream_, bytes, kAsValue);
    error = failed;
  } else {
    const auto [failed, size] = co_await asio::async_write(socket_, bytes, kAsValue);
    error = failed;
  }
  if (error) co_return failure("write", error);
  co_return core::Result<>();
}

asio::awaitable<core::Result<std::string_view>> EtcdConnection::read() {
  if (closed_) co_return core::Error{"ERR read: closed"};
  const asio::mutable_buffer room(buffer_.data(), buffer_.size());
  boost::system::error_code error;
  size_t size = 0;
  if (tls_stream_) {
    std::tie(error, size) = co_await tls_stream_->async_read_some(room, kAsValue);
  } else {
    std::tie(error, size) = co_await socket_.async_read_some(room, kAsValue);
  }
  if (closed_) co_return core::Error{"ERR read: closed"};
  if (error == asio::error::eof || error == asio::ssl::error::stream_truncated)
    size = 0;
  else if (error)
    co_return failure("read", error);
  co_return std::string_view(buffer_.data(), size);
}

void EtcdConnection::close() {
  closed_ = true;
  timer_.cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void EtcdConnection::close_after(std::chrono::milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& canceled) {
    const auto connection = weak.lock();
    // A handler that was due already is not canceled by disarm().
    if (canceled || !connection || connection->timer_.expiry() > Clock::now()) return;
    connection->close();
  });
}

void EtcdConnection::disarm() {
  timer_.expires_at(Clock::time_point::max());
}

bool EtcdConnection::is_idle() {
  if (closed_) return false;
  char byte = 0;
  const ssize_t got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace server::cluster
