// SPDX-License-Identifier: MIT
//
// ChildDescriptors: the inherited descriptors that a forked child treats in its own way. It closes
// all others at once, so that sockets and files end with the parent.
//
// Thread safety: a value; close_unneeded() in a process with one thread.
// Source: close_range(2), proc(5).
#pragma once

#include <vector>

#include "core/result.h"

namespace server {

struct ChildDescriptors {
  std::vector<int> kept{};
  // Closed after all others; -1 for none. A lock on this descriptor therefore ends last. When
  // another process gets the lock, no child of its former owner holds a socket.
  int closed_last = -1;
};

// Closes all but the standard descriptors and the kept ones. Errors: the system refuses both ways
// to close or list them; then some are still open.
core::Result<> close_unneeded(const ChildDescriptors& descriptors);

}  // namespace server
