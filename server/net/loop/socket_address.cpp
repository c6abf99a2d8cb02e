// SPDX-License-Identifier: MIT
#include "server/net/loop/socket_address.h"

#include <fmt/format.h>
#include <sys/socket.h>

namespace server::net {

namespace ip = boost::asio::ip;

SocketAddress::SocketAddress(int descriptor, End end) {
  ip::tcp::endpoint found;
  auto size = static_cast<socklen_t>(found.capacity());
  const int failed = end == End::kPeer ? ::getpeername(descriptor, found.data(), &size)
                                       : ::getsockname(descriptor, found.data(), &size);
  const int family = found.data()->sa_family;
  if (failed != 0 || (family != AF_INET && family != AF_INET6)) return;
  found.resize(size);
  endpoint_ = found;
}

std::string SocketAddress::text() const {
  const std::string address = endpoint_.address().to_string();
  return endpoint_.address().is_v6() ? fmt::format("[{}]:{}", address, endpoint_.port())
                                     : fmt::format("{}:{}", address, endpoint_.port());
}

bool SocketAddress::is_loopback() const {
  const ip::address address = endpoint_.address();
  const bool is_mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  return is_mapped ? ip::make_address_v4(ip::v4_mapped, address.to_v6()).is_loopback()
                   : address.is_loopback();
}

}  // namespace server::net
