// SPDX-License-Identifier: MIT
//
// Daemon: runs the server as a separate process, detached from the terminal that started it.
//
//   starter: detach() ─► waits ─────────────────────► exit status
//   daemon:      └─► detach() ─► loads ─► become_silent()
//
// The starter waits until the daemon is ready or has ended. The exit status of the starter reports
// which of the two has happened. Until then the daemon writes its messages to the terminal.
//
// Thread safety: detach() must be called while the process has only one thread. Any thread may call
// become_silent(), once.
// open_standard_streams() must be called first, by main().
// Source: daemon(7).
#pragma once

#include <optional>

#include "core/descriptor.h"
#include "core/result.h"

namespace server {

// Opens missing standard streams as /dev/null. Otherwise a file of the server could get a number
// from 0 to 2, and output to a standard stream would be written to that file. A missing standard
// input cannot be read.
void open_standard_streams();

class Daemon {
 public:
  // Returns the exit status in the starter, and nullopt in the daemon. Errors: the daemon could not
  // be started.
  core::Result<std::optional<int>> detach();
  // Called when the daemon is ready. Lets the starter exit. From then on the daemon writes nothing
  // to the terminal. Has no effect in a process that is not a daemon.
  void become_silent();

 private:
  core::Descriptor null_;    // descriptor of /dev/null
  core::Descriptor report_;  // end of the pipe through which the daemon reports to the starter
};

}  // namespace server
