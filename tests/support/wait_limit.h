// SPDX-License-Identifier: MIT
//
// A timeout for blocking sockets, so that a test with a silent peer fails instead of hanging.
//
// Thread safety: may be called from any thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "tests/support/waiting.h"

namespace support {

// Later calls of accept() and recv() on the socket fail with EAGAIN after support::deadline().
inline void limit_waits(int descriptor) {
  const timeval patience{.tv_sec = deadline().count(), .tv_usec = 0};
  EXPECT_EQ(::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
}

}  // namespace support
