// SPDX-License-Identifier: MIT
//
// release_storage: empties a string or vector and gives its memory back.
//
// `x = {}` and `x = std::string()` do not: assigning from an empty one keeps the capacity.
// scripts/check_tree.py refuses them.
// Thread safety: as the container.
#pragma once

namespace core {

template <class Container>
void release_storage(Container& container) {
  Container().swap(container);
}

}  // namespace core
