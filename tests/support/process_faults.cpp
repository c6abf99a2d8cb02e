// SPDX-License-Identifier: MIT
//
// Simulates faults of the operating system for the system tests. The file is built as a library to
// preload (LD_PRELOAD), which environment variables control:
//
//   HELD_CHILD=path   a forked child starts when no file has this path
//   FORKS_MAX=n       fork() works n times and then fails, as at a limit on processes
//   THREADS_MAX=n     pthread_create() works n times and then fails
//   NO_CLOSE_RANGE=1  close_range() fails as on a kernel that lacks it
//   LOOKUP_MS=n       a lookup of a host's address takes n milliseconds, as with a slow DNS
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "tests/support/environment.h"
#include "tests/support/waiting.h"

namespace {

using support::number_of;

// Counts a call against the limit in the environment variable `limit_name`. Returns false if the
// limit is reached.
bool take_one(const char* limit_name, std::atomic<uint64_t>& taken) {
  return taken.fetch_add(1) < number_of(limit_name, UINT64_MAX);
}

template <class Function>
Function next_of(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

std::atomic<uint64_t> forks{0};
std::atomic<uint64_t> threads{0};

}  // namespace

extern "C" pid_t fork() noexcept {
  if (!take_one("FORKS_MAX", forks)) {
    errno = EAGAIN;
    return -1;
  }
  const pid_t child = next_of<pid_t (*)()>("fork")();
  if (child == 0) {
    const char* const path = std::getenv("HELD_CHILD");
    if (path != nullptr) (void)support::wait_until([path] { return ::access(path, F_OK) != 0; });
  }
  return child;
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
  if (!take_one("THREADS_MAX", threads)) return EAGAIN;
  return next_of<decltype(&::pthread_create)>("pthread_create")(thread, attributes, run, argument);
}

extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  support::let_time_pass(std::chrono::milliseconds(number_of("LOOKUP_MS", 0)), "DNS is slow");
  return next_of<decltype(&::getaddrinfo)>("getaddrinfo")(host, service, hints, found);
}

extern "C" int close_range(unsigned first, unsigned last, int flags) noexcept {
  if (number_of("NO_CLOSE_RANGE", 0) == 0) {
    return next_of<decltype(&::close_range)>("close_range")(first, last, flags);
  }
  errno = ENOSYS;
  return -1;
}
