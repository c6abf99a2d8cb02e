// SPDX-License-Identifier: MIT
//
// The part of Connection that bounds what a client's input costs.
#include <algorithm>

#include "server/net/connection.h"

namespace server::net {

void Connection::give_back_input() {
  // The rest of a pipeline usually grows again, to about as much.
  constexpr size_t kKeptForMore = 4 * IoThread::kReadBufferBytes;
  const size_t kept = input_.empty() ? IoThread::kReadBufferBytes : kKeptForMore;
  if (input_.capacity() <= std::max(kept, 2 * input_.size())) return;
  std::string(input_).swap(input_);
}

}  // namespace server::net
