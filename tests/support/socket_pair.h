// SPDX-License-Identifier: MIT
//
// SocketPair: a connected pair of non-blocking sockets. Tests poll `near`, and use `far` to
// make `near` ready.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

struct SocketPair {
  SocketPair() {
    std::array<int, 2> both{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both.data()), 0);
    near = both[0];
    far = both[1];
  }
  ~SocketPair() {
    if (near >= 0) ::close(near);
    ::close(far);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  void make_ready() const { ASSERT_EQ(::write(far, "x", 1), 1); }

  int near = -1;
  int far = -1;
};
