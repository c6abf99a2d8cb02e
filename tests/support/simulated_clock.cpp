// SPDX-License-Identifier: MIT
//
// A wall clock for the system tests, as a library to preload (LD_PRELOAD). clock_gettime returns
// the milliseconds since 1970 that the file named by SIMULATED_CLOCK contains as an int64_t. Other
// clocks are the system's, so timers and sockets work as usual.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

using Milliseconds = std::atomic<int64_t>;

const Milliseconds* open_clock() {
  const char* const path = std::getenv("SIMULATED_CLOCK");
  if (path == nullptr) return nullptr;
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* const memory = ::mmap(nullptr, sizeof(Milliseconds), PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<const Milliseconds*>(memory);
}

// The mapped file with the simulated time. A constructor maps it before main(). Before that, the
// clock returns the system's time.
const Milliseconds* simulated = nullptr;
[[gnu::constructor]] void begin() {
  simulated = open_clock();
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (!is_wall || simulated == nullptr) {
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  }
  const int64_t now_ms = simulated->load(std::memory_order_relaxed);
  time->tv_sec = now_ms / 1000;
  time->tv_nsec = now_ms % 1000 * 1'000'000;
  return 0;
}
