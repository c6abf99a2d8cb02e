// SPDX-License-Identifier: MIT
//
// SaveWork: the work of a forked child. SaveFigures: the progress that child and parent report to
// each other.
//
// Thread safety: the parent and the child may read and write SaveFigures at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "core/result.h"

namespace server {

// SaveFigures is stored in memory that parent and child share.
struct SaveFigures {
  std::atomic<bool> may_begin{false};    // set by the parent when the child may begin
  std::atomic<bool> is_detached{false};  // set by the child when it no longer shares arrays
  std::atomic<uint64_t> written_bytes{0};
  std::atomic<uint64_t> written_keys{0};
  // Memory that was copied because the parent or the child wrote to it.
  std::atomic<uint64_t> copied_bytes{0};
};

// SaveWork is the function that saves the data in the child. If it fails, the parent gets the
// message of the error.
using SaveWork = std::function<core::Result<>(SaveFigures&)>;

}  // namespace server
