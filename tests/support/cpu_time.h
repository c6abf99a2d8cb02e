// SPDX-License-Identifier: MIT
//
// Processor time of the calling thread: what a limit of a test is measured in, since the time on
// the wall grows with whatever else the machine does.
//
// Thread safety: a function; any thread.
#pragma once

#include <ctime>

namespace support {

inline double cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

}  // namespace support
