// SPDX-License-Identifier: MIT
//
// Error texts of PSYNC and SYNC.
//
// Thread safety: constants.
#pragma once

#include <string_view>

namespace server {

inline constexpr std::string_view kNoSyncInFailover = "NOMASTERLINK Can't SYNC while failing over";
inline constexpr std::string_view kNoSyncWithoutLeader =
    "NOMASTERLINK Can't SYNC while not connected with my master";

}  // namespace server
