// SPDX-License-Identifier: MIT
//
// The payload of BF.LOAD in one piece; a server only ever writes it in pieces.
//
// Thread safety: a pure function.
#pragma once

#include <string>
#include <string_view>

#include "persistence/filters/valkeybloom_blob.h"

namespace persistence {

inline std::string encode_load_payload(const core::bloom::ScalableFilter& filter) {
  std::string payload;
  write_load_payload(filter, [&payload](std::string_view piece) { payload += piece; });
  return payload;
}

}  // namespace persistence
