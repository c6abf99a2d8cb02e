// SPDX-License-Identifier: MIT
//
// A limit for blocking sockets, so that a test whose peer is silent fails and does not hang.
//
// Thread safety: a function; any thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "tests/support/waiting.h"

namespace support {

// From now on accept() and recv() on the socket fail with EAGAIN after the deadline of all waits.
inline void limit_waits(int descriptor) {
  const timeval patience{.tv_sec = deadline().count(), .tv_usec = 0};
  EXPECT_EQ(::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
}

}  // namespace support
