// SPDX-License-Identifier: MIT
//
// Writes a crash report of the process: the signal, the stack, and the activity of its threads.
//
// On SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT a report is appended to the log file. Without a
// log file, it is written to standard error. The report contains the stack of the thread that
// crashed and the names of all threads. It also contains the names of the last commands of each I/O
// thread. Then the signal has its usual effect, a core dump included.
//
// Invariants: the report contains the names of commands, but no arguments and no replies. Writing
// the report allocates no memory and takes no lock. A crash while a report is written ends the
// process at once.
// Thread safety: install_crash_log() is called once, before there are threads; the other functions
// may be called from any thread.
// Source: signal-safety(7), backtrace(3).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace server {

class Statistics;

// Installs the signal handlers. `log_file` is the path of the log; empty for standard error. Has no
// effect in builds whose sanitizer reports crashes.
void install_crash_log(const std::string& log_file);

// While an instance exists, crash reports include the names of the last commands that `statistics`
// has recorded. At most one instance may exist at a time.
class CrashTrails {
 public:
  explicit CrashTrails(const Statistics& statistics);
  ~CrashTrails();
  CrashTrails(const CrashTrails&) = delete;
  CrashTrails& operator=(const CrashTrails&) = delete;
};

// A signal stack for the calling thread, so that a stack overflow of the thread can be reported.
class CrashStack {
 public:
  CrashStack();
  ~CrashStack();

 private:
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace server
