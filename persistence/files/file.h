// SPDX-License-Identifier: MIT
//
// Reads and writes whole files, for the configuration, the users, the cluster's node file and
// bloomery-cluster. Snapshots and the append log use FileSystem.
//
// Invariants: after write_file_atomically() the path has all of the new bytes. After an error it
// has all of the new bytes or its previous content. A failure leaves no temporary file. If the
// process is killed, the next write of the same path removes the temporary file.
// Thread safety: the functions may be called from any thread. Two writers of one path use separate
// temporary files, and the later rename wins.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"
#include "persistence/files/open_file.h"

namespace persistence {

// Reads all bytes up to the end. Errors: those of open_file(), `ERR can't read …`, and more than
// `limit_bytes` bytes. The limit also applies to streams, whose size is unknown in advance.
core::Result<std::string> read_whole_file(const NamedFile& file, size_t limit_bytes,
                                          FileKinds kinds = FileKinds::kRegular);

// Does the same as read_whole_file(), from an open descriptor, which stays open. `name` is used in
// messages only.
core::Result<std::string> read_descriptor(int descriptor, const std::string& name,
                                          size_t limit_bytes);

// Writes a temporary file in the same directory, syncs it, renames it to `path` and syncs the
// directory. Only the owner gets access. If the file exists, the owner's permissions are kept.
core::Result<> write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace persistence
