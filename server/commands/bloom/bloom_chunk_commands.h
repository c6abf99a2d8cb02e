// SPDX-License-Identifier: MIT
//
// Error texts of BF.SCANDUMP and BF.LOADCHUNK, as in RedisBloom. The error for an invalid iterator
// of BF.SCANDUMP has no error code. The texts about windows are ours.
//
// Thread safety: constants.
#pragma once

#include <string_view>

namespace server {

inline constexpr std::string_view kIteratorToRead = "Second argument must be numeric";
inline constexpr std::string_view kIteratorToWrite = "ERR Second argument must be numeric";
inline constexpr std::string_view kBadData = "ERR received bad data";
inline constexpr std::string_view kNoLayer = "ERR invalid offset - no link found";
inline constexpr std::string_view kDumpRotated =
    "ERR the window has rotated since iterator 0: begin again with iterator 0, or use DUMP";
inline constexpr std::string_view kCopyRotated =
    "ERR the chunk is from another generation of the window: delete the key and load a new dump, "
    "or use DUMP and RESTORE";
inline constexpr std::string_view kChunkTooLong = "ERR invalid chunk - Too big for current filter";

}  // namespace server
