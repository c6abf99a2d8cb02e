// SPDX-License-Identifier: MIT
#include "server/net/client_input.h"

#include <algorithm>

#include "core/release_storage.h"

namespace server::net {

size_t ClientInput::room(bool is_authenticated) const {
  return is_authenticated ? kReadBytes : kUnknownBytesMax - std::min(kUnknownBytesMax, size());
}

std::string_view ClientInput::join(std::string_view fresh) {
  if (kept_.empty()) return fresh;
  kept_.append(fresh);
  return kept_;
}

void ClientInput::keep(std::string_view rest, bool is_authenticated) {
  if (kept_.empty()) {
    if (rest.empty()) return;
    // Exactly: a string that grows doubles.
    if (!is_authenticated) kept_.reserve(kUnknownBytesMax);
    kept_.assign(rest);
    return;
  }
  kept_.erase(0, kept_.size() - rest.size());
  // Gives back what a big command has taken. The rest of a pipeline usually grows again, to about
  // as much.
  constexpr size_t kKeptForMore = 4 * kReadBytes;
  const size_t kept = kept_.empty() ? kReadBytes : kKeptForMore;
  if (kept_.capacity() > std::max(kept, 2 * kept_.size())) std::string(kept_).swap(kept_);
}

void ClientInput::forget() {
  core::release_storage(kept_);
}

}  // namespace server::net
