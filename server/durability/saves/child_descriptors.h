// SPDX-License-Identifier: MIT
//
// ChildDescriptors: the inherited descriptors that a forked child keeps or closes last. The child
// closes all others immediately, so that none of them stays open when the parent ends.
//
// Thread safety: a value shared by threads needs a lock. close_unneeded() must be called in a
// process with one thread.
// Source: close_range(2), proc(5).
#pragma once

#include <vector>

#include "core/result.h"

namespace server {

struct ChildDescriptors {
  std::vector<int> kept{};
  // Descriptor that is closed after all others; -1 for none. A lock on this descriptor is released
  // last. So when another process gets the lock, no child of the former owner has an open socket.
  int closed_last = -1;
};

// Closes all descriptors except the standard streams and the kept ones. Errors: the system denies
// close_range(), and the open descriptors cannot be listed. Some descriptors then stay open.
core::Result<> close_unneeded(const ChildDescriptors& descriptors);

}  // namespace server
