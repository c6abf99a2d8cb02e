// SPDX-License-Identifier: MIT
//
// release_storage: empties a string or vector and frees its memory.
//
// `x = {}` and `x = std::string()` do not free the memory: an assignment from an empty container
// keeps the capacity. scripts/check_tree.py rejects such assignments.
// Thread safety: needs exclusive access to the container.
#pragma once

namespace core {

template <class Container>
void release_storage(Container& container) {
  Container().swap(container);
}

}  // namespace core
