// SPDX-License-Identifier: MIT
//
// The clock for permits, which limit the time in which a leader may acknowledge writes. The clock
// continues while the machine sleeps, and never goes back.
//
// Thread safety: any thread may call the function.
// Source: CLOCK_BOOTTIME in https://man7.org/linux/man-pages/man2/clock_gettime.2.html.
#pragma once

#include <time.h>

#include <cstdint>

namespace server::cluster {

inline int64_t permit_clock_us() {
  struct timespec now {};
  (void)clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

}  // namespace server::cluster
