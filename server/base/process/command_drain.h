// SPDX-License-Identifier: MIT
//
// CommandDrain: calls back once every command that started before drain() was called has ended.
//
// Thread safety: drain() may be called from any thread. It calls back later on another thread, or
// at once if no thread runs commands.
#pragma once

#include <functional>

namespace server {

class CommandDrain {
 public:
  virtual void drain(std::function<void()> on_ended) = 0;

 protected:
  ~CommandDrain() = default;
};

}  // namespace server
