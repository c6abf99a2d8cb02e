// SPDX-License-Identifier: MIT
//
// start_thread(): starts threads that the server needs to work.
//
// Thread safety: any thread may call the function.
// Source: pthread_create(3), EAGAIN.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace server {

// Starts the thread. `name` has at most 15 characters, for ps(1) and debuggers, and is set when
// this function returns. If the system denies another thread, the process ends at once, with a
// message and status 1. The function does not throw, because an exception would destroy objects
// that running threads use.
std::thread start_thread(const std::string& name, std::function<void()> run);

}  // namespace server
