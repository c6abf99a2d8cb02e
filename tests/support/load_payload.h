// SPDX-License-Identifier: MIT
//
// The payload of BF.LOAD as one string; a server only writes it in pieces.
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
