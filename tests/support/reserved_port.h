// SPDX-License-Identifier: MIT
//
// ReservedPort: a port of 127.0.0.1 that the kernel assigns to no other process while it is
// reserved. Connections are refused until the server under test listens on it.
//
// The port is reserved by a socket that is bound but does not listen. SO_REUSEADDR allows the
// server's socket to use the same port.
// Thread safety: port() may be called from any thread.
// Source: socket(7).
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

class ReservedPort {
 public:
  ReservedPort() : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int is_shared = 1;
    EXPECT_EQ(::setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &is_shared, sizeof is_shared), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~ReservedPort() { ::close(descriptor_); }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;

  int descriptor() const { return descriptor_; }
  uint16_t port() const { return port_; }

 private:
  int descriptor_;
  uint16_t port_ = 0;
};
