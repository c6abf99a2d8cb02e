// SPDX-License-Identifier: MIT
//
// The last words of a process that crashes: which signal, where, what its threads did.
//
// On SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT a report is appended to the log file, or written
// to standard error without one: the stack of the thread that crashed, the names of all threads,
// and those of the last commands of each I/O thread. Then the signal has its usual effect, a core
// dump included.
//
// Invariants: the report holds names of commands, none of their arguments and no reply. Nothing in
// it allocates or takes a lock. A crash while a report is written ends the process at once.
// Thread safety: install_crash_log() is called once, before there are threads; the rest by any.
// Source: signal-safety(7), backtrace(3).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace server {

class Statistics;

// `log_file`: empty for standard error. Does nothing in builds whose sanitizer reports crashes.
void install_crash_log(const std::string& log_file);

// The report tells the trails of these statistics while this lives. One at a time.
class CrashTrails {
 public:
  explicit CrashTrails(const Statistics& statistics);
  ~CrashTrails();
  CrashTrails(const CrashTrails&) = delete;
  CrashTrails& operator=(const CrashTrails&) = delete;
};

// A stack for the report on the calling thread, so that one that has used its own up can tell, too.
class CrashStack {
 public:
  CrashStack();
  ~CrashStack();
  CrashStack(const CrashStack&) = delete;
  CrashStack& operator=(const CrashStack&) = delete;

 private:
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace server
