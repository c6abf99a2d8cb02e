// SPDX-License-Identifier: MIT
//
// Error text of CLUSTER and CLUSTERX on a server that is in no cluster.
//
// Thread safety: constants.
#pragma once

#include <string_view>

namespace server {

inline constexpr std::string_view kClusterDisabled =
    "ERR This instance has cluster support disabled";

}  // namespace server
