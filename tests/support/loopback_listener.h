// SPDX-License-Identifier: MIT
//
// LoopbackListener: a socket that listens on a free port of 127.0.0.1, for peers that a test
// simulates.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdint>

#include "tests/support/reserved_port.h"

class LoopbackListener {
 public:
  LoopbackListener() { EXPECT_EQ(::listen(descriptor(), 8), 0); }

  int descriptor() const { return reserved_.descriptor(); }
  uint16_t port() const { return reserved_.port(); }
  // Accepts the next connection and returns its descriptor, which the caller must close. Returns a
  // negative number if the socket was shut down.
  int accept() const { return ::accept4(descriptor(), nullptr, nullptr, SOCK_CLOEXEC); }

 private:
  const ReservedPort reserved_;
};
