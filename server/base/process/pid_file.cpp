// SPDX-License-Identifier: MIT
#include "server/base/process/pid_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "persistence/files/open_file.h"
#include "persistence/files/posix_io.h"
#include "server/base/log/log.h"

namespace server {

PidFile::PidFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  const auto written = write();
  if (written) return;
  log_warning("No PID file: {}", core::without_code(written.error().message));
  path_.clear();
}

PidFile::~PidFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

core::Result<> PidFile::write() const {
  // Other users may read the pid file.
  constexpr mode_t kMode = 0644;
  const auto file = persistence::open_file({path_, "pidfile"}, O_WRONLY | O_CREAT,
                                           persistence::FileKinds::kRegular, kMode);
  if (!file) return file.error();
  if (::ftruncate(file->get(), 0) != 0) return persistence::io_failure("write", path_, errno);
  return persistence::write_all(file->get(), fmt::format("{}\n", getpid()), path_);
}

}  // namespace server
