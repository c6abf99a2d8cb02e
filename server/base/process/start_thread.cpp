// SPDX-License-Identifier: MIT
#include "server/base/process/start_thread.h"

#include <fmt/format.h>
#include <pthread.h>

#include <cstdlib>
#include <system_error>
#include <utility>

#include "core/memory/thread_heap.h"
#include "server/base/log/fatal_message.h"
#include "server/base/process/allocator.h"

namespace server {
namespace {

[[noreturn]] void end_process(const std::string& name, const std::error_code& cause) {
  const std::string message = fmt::format(
      "Can't start the thread '{}': {} (a limit on processes or threads: ulimit -u, pids.max)",
      name, cause.message());
  report_fatal(message);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace

std::thread start_thread(const std::string& name, std::function<void()> run) {
  try {
    std::thread thread([run = std::move(run)] {
      core::count_thread_heap();
      // jemalloc allocates tables for each thread, which count_thread_heap() does not count. They
      // are added to used memory now. Otherwise used memory would grow at the next periodic
      // correction, and could exceed a memory limit that was set before.
      correct_heap_bytes();
      run();
    });
    ::pthread_setname_np(thread.native_handle(), name.c_str());
    return thread;
  } catch (const std::system_error& error) {
    end_process(name, error.code());
  }
}

}  // namespace server
