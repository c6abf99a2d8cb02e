// SPDX-License-Identifier: MIT
//
// NameHash: the hash function of maps whose keys are names.
//
// It hashes std::string and std::string_view alike, so that a lookup creates no string.
// Thread safety: a pure function.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace core {

struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
};

}  // namespace core
