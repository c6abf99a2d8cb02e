// SPDX-License-Identifier: MIT
#include "server/net/loop/socket_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "tests/support/caller.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/socket_pair.h"

namespace server::net {
namespace {

using End = SocketAddress::End;
using ::testing::StartsWith;

TEST(SocketAddressTest, EachEndHasItsOwn) {
  const LoopbackListener listener;
  const Caller caller;
  ASSERT_TRUE(caller.call("127.0.0.1", listener.port()));
  const int accepted = listener.accept();
  const std::string port = std::to_string(listener.port());
  EXPECT_EQ(SocketAddress(caller.descriptor(), End::kPeer).text(), "127.0.0.1:" + port);
  EXPECT_EQ(SocketAddress(accepted, End::kOwn).text(), "127.0.0.1:" + port);
  EXPECT_EQ(SocketAddress(accepted, End::kPeer).text(),
            SocketAddress(caller.descriptor(), End::kOwn).text());
  EXPECT_TRUE(SocketAddress(accepted, End::kPeer).is_loopback());
  ::close(accepted);
}

// Returns the address of a socket that is bound but not connected.
SocketAddress bound_to(const in6_addr& address) {
  const int descriptor = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int off = 0;
  ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_in6 where{};
  where.sin6_family = AF_INET6;
  where.sin6_addr = address;
  EXPECT_EQ(::bind(descriptor, reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
  const SocketAddress found(descriptor, End::kOwn);
  ::close(descriptor);
  return found;
}

in6_addr parsed(const char* text) {
  in6_addr address{};
  EXPECT_EQ(::inet_pton(AF_INET6, text, &address), 1);
  return address;
}

TEST(SocketAddressTest, IPv6StandsInBrackets) {
  EXPECT_THAT(bound_to(parsed("::")).text(), StartsWith("[::]:"));
  EXPECT_FALSE(bound_to(parsed("::")).is_loopback());
}

TEST(SocketAddressTest, IPv4InsideOfIPv6IsJudgedAsIPv4) {
  EXPECT_TRUE(bound_to(parsed("::ffff:127.0.0.1")).is_loopback());
  EXPECT_FALSE(bound_to(parsed("::ffff:0.0.0.0")).is_loopback());
}

TEST(SocketAddressTest, WithoutOneItIsAllZeros) {
  EXPECT_EQ(SocketAddress(-1, End::kPeer).text(), "0.0.0.0:0");
  EXPECT_FALSE(SocketAddress(-1, End::kPeer).is_loopback());
  const SocketPair unix_sockets;
  EXPECT_EQ(SocketAddress(unix_sockets.near, End::kPeer).text(), "0.0.0.0:0");
}

}  // namespace
}  // namespace server::net
