// SPDX-License-Identifier: MIT
//
// Error texts of BF.SCANDUMP and BF.LOADCHUNK, as in RedisBloom. The error for an invalid iterator
// of BF.SCANDUMP has no error code.
//
// Thread safety: constants.
#pragma once

#include <string_view>

namespace server {

inline constexpr std::string_view kIteratorToRead = "Second argument must be numeric";
inline constexpr std::string_view kIteratorToWrite = "ERR Second argument must be numeric";
inline constexpr std::string_view kBadData = "ERR received bad data";
inline constexpr std::string_view kNoLayer = "ERR invalid offset - no link found";
inline constexpr std::string_view kChunkTooLong = "ERR invalid chunk - Too big for current filter";

}  // namespace server
