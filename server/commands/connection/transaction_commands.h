// SPDX-License-Identifier: MIT
//
// Error texts of EXEC.
//
// Thread safety: constants.
#pragma once

#include <string_view>

namespace server {

inline constexpr std::string_view kExecWithoutMulti = "ERR EXEC without MULTI";
inline constexpr std::string_view kTransactionDiscarded =
    "EXECABORT Transaction discarded because of previous errors.";

}  // namespace server
