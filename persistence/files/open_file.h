// SPDX-License-Identifier: MIT
//
// open_file() opens files that options or command lines name, and files of the data directory. It
// rejects anything but a regular file, unless the caller accepts streams.
//
// Invariants: open_file() checks the file type of the opened descriptor. So a path that is replaced
// during the call cannot evade the check. Only kStreamsWithWait waits for another process.
// Thread safety: open_file() keeps no state, so any thread may call it.
// Source: open(2) under O_NONBLOCK, fifo(7).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/descriptor.h"
#include "core/result.h"
#include "persistence/files/posix_io.h"

namespace persistence {

// NamedFile: a path, and for error messages the name of the option that has the path as its value.
struct NamedFile {
  NamedFile(std::string file_path, std::string_view option_name = {})  // NOLINT: implicit
      : path(std::move(file_path)), option(option_name) {}

  std::string path;
  std::string_view option;
};

// FileKinds: the accepted types of files. Directories, sockets and block devices are never
// accepted.
enum class FileKinds : uint8_t {
  // Accepts regular files only. Required for every file that may be opened while the server serves
  // clients.
  kRegular,
  // Also accepts character devices, and FIFOs whose other end is open. Reads and writes never wait.
  // Used for the option `logfile`.
  kStreams,
  // Accepts the same files as kStreams, but waits for the other end of a FIFO and for its bytes.
  // Used while programs start: for the server's configuration files, and for the password files of
  // bloomery-cluster.
  kStreamsWithWait,
};

// Opens the file with O_CLOEXEC in addition to `flags`. `mode` applies to a new file. Errors: `ERR
// can't open 'PATH': …`; for a type that is not accepted, the message names the option and the
// accepted types.
core::Result<core::Descriptor> open_file(const NamedFile& file, int flags,
                                         FileKinds kinds = FileKinds::kRegular,
                                         mode_t mode = kOwnerOnly);

}  // namespace persistence
