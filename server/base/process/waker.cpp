// SPDX-License-Identifier: MIT
#include "server/base/process/waker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace server {

Waker::Waker() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Waker::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor(), &one, sizeof one);
}

void Waker::wait(int64_t timeout_ms) {
  pollfd entry{descriptor(), POLLIN, 0};
  (void)::poll(&entry, 1, static_cast<int>(timeout_ms));
  drain();
}

void Waker::drain() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(descriptor(), &count, sizeof count);
}

}  // namespace server
