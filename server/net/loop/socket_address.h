// SPDX-License-Identifier: MIT
//
// SocketAddress: the address at one end of a TCP socket.
//
// Thread safety: any thread may read an address that no thread changes.
// Source: getsockname(2), getpeername(2); RFC 4291, section 2.5.5.2, for IPv4-mapped IPv6
// addresses.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>

namespace server::net {

class SocketAddress {
 public:
  enum class End : uint8_t { kOwn, kPeer };

  // Reads the address of one end of the socket. The address is all zeros if the system call fails,
  // or if the socket uses neither IPv4 nor IPv6.
  SocketAddress(int descriptor, End end);

  // Returns the address and port, such as "127.0.0.1:50000" or "[::1]:50000".
  std::string text() const;
  // Returns whether the address is reachable only from this machine.
  bool is_loopback() const;

 private:
  boost::asio::ip::tcp::endpoint endpoint_;
};

}  // namespace server::net
