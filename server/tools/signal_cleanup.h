// SPDX-License-Identifier: MIT
//
// SignalCleanup: removes a temporary file when SIGINT or SIGTERM ends the process.
//
// Invariants: the process still ends by the signal.
// Thread safety: at most one SignalCleanup may exist at a time.
#pragma once

#include <unistd.h>

#include <csignal>
#include <string>

namespace server {

class SignalCleanup {
 public:
  // `path` must outlive the object.
  explicit SignalCleanup(const std::string& path) {
    path_ = path.c_str();
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, remove_and_end);
  }
  ~SignalCleanup() {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
    path_ = nullptr;
  }
  SignalCleanup(const SignalCleanup&) = delete;
  SignalCleanup& operator=(const SignalCleanup&) = delete;

 private:
  static void remove_and_end(int signal) {
    if (path_ != nullptr) ::unlink(path_);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }

  static inline const char* volatile path_ = nullptr;
};

}  // namespace server
