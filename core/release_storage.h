// SPDX-License-Identifier: MIT
//
// release_storage: empties a string or vector and frees its memory.
//
// `x = {}` and `x = std::string()` do not: assigning from an empty one keeps the capacity.
// scripts/check_tree.py rejects them.
// Thread safety: as the container.
#pragma once

namespace core {

template <class Container>
void release_storage(Container& container) {
  Container().swap(container);
}

}  // namespace core
