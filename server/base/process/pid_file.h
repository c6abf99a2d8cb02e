// SPDX-License-Identifier: MIT
//
// PidFile: the file with the process id, which exists while the server runs.
//
// Not thread-safe: belongs to main().
#pragma once

#include <string>

#include "core/result.h"

namespace server {

class PidFile {
 public:
  // Writes the file; an empty path means no file. If the file cannot be written, a warning is
  // logged, and the server runs without it.
  explicit PidFile(std::string path);
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  core::Result<> write() const;

  std::string path_;  // path of the pid file; empty if there is no file to remove
};

}  // namespace server
