// SPDX-License-Identifier: MIT
//
// CommandDrain: tells when every command that had begun has ended.
//
// Thread safety: drain() may be called from any thread; it calls back on another one, later, or at
// once where no thread runs commands.
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
