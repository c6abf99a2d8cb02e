// SPDX-License-Identifier: MIT
#include "server/base/process/raw_report.h"

#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace server {
namespace {

constexpr int kFramesMax = 100;

// The path of the log is stored in advance, because a signal handler must not allocate.
std::array<char, 4096> log_path{};

int open_report_file() {
  if (log_path[0] == '\0') return -1;
  // The handler opens the file itself, because open_file() allocates. O_NONBLOCK is set, because
  // otherwise opening a FIFO without a reader would block.
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC;
  return ::open(log_path.data(), kFlags, 0600);
}

}  // namespace

void prepare_reports(const std::string& log_file) {
  log_path.fill('\0');
  // The path is made absolute, because CONFIG SET dir changes the meaning of a relative path.
  std::error_code error;
  const std::string path =
      log_file.empty() ? log_file : std::filesystem::absolute(log_file, error).string();
  if (path.size() < log_path.size()) std::ranges::copy(path, log_path.data());
  // The first call of backtrace() loads a library, which a signal handler must not do. So
  // backtrace() is called here once.
  void* frame = nullptr;
  (void)::backtrace(&frame, 1);
}

ReportFile::ReportFile() : file_(open_report_file()) {}

RawOutput& RawOutput::operator<<(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written <= 0) break;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return *this;
}

void write_stack(RawOutput& out) {
  std::array<void*, kFramesMax> frames;
  const int count = ::backtrace(frames.data(), kFramesMax);
  ::backtrace_symbols_fd(frames.data(), count, out.descriptor());
}

}  // namespace server
