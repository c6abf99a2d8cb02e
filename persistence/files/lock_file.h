// SPDX-License-Identifier: MIT
//
// The name of the lock file of a data directory. A server locks the file while it runs, and tools
// that change files of a data directory lock it meanwhile.
//
// Thread safety: a constant.
// Source: docs/persistence.md, "Files".
#pragma once

namespace persistence {

inline constexpr const char* kLockFileName = ".bloomery.lock";

}  // namespace persistence
