// SPDX-License-Identifier: MIT
//
// CPU time of the calling thread. Tests limit CPU time, because elapsed time depends on the load of
// the machine.
//
// Thread safety: may be called from any thread.
#pragma once

#include <ctime>

namespace support {

inline double cpu_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

}  // namespace support
