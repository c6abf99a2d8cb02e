// SPDX-License-Identifier: MIT
//
// SaveWork: what a forked child does, and SaveFigures, by which it and its parent tell each other
// how far they are.
//
// Thread safety: figures may be used by both processes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "core/result.h"

namespace server {

// In memory that parent and child share.
struct SaveFigures {
  std::atomic<bool> may_begin{false};    // set by the parent
  std::atomic<bool> is_detached{false};  // set by the child: it shares no array any more
  std::atomic<uint64_t> written_bytes{0};
  std::atomic<uint64_t> written_keys{0};
  std::atomic<uint64_t> copied_bytes{0};  // memory that writes of either side made its own
};

// Saves; runs in the child. An error's message goes to the parent.
using SaveWork = std::function<core::Result<>(SaveFigures&)>;

}  // namespace server
