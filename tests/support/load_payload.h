// SPDX-License-Identifier: MIT
//
// Returns the payload of BF.LOAD as one string. The server itself writes this payload only in
// pieces.
//
// Thread-safe: the function keeps no state.
#pragma once

#include <string>
#include <string_view>

#include "persistence/filters/valkeybloom_codec.h"

namespace persistence {

inline std::string encode_load_payload(const core::bloom::ScalableFilter& filter) {
  std::string payload;
  write_load_payload(filter, [&payload](std::string_view piece) { payload += piece; });
  return payload;
}

}  // namespace persistence
