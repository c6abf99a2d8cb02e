// SPDX-License-Identifier: MIT
//
// Replayer: executes the commands of an append log file, or of a leader's stream, as if a client
// had sent them.
//
// Thread safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace server {

// The origin of a session's commands.
enum class CommandOrigin : uint8_t {
  kClient,
  // A Bloomery server wrote the commands. They are the effects of commands that have succeeded on
  // that server, so they are executed without checks.
  kOwnJournal,
  kForeignJournal,  // a server of another program, such as Redis, wrote the commands
};

class Replayer {
 public:
  virtual ~Replayer() = default;
  // Executes the command. Returns its reply, a view that is valid until the next call.
  virtual std::string_view execute(std::span<const std::string_view> arguments) = 0;
};
using ReplayerFactory = std::function<std::unique_ptr<Replayer>(CommandOrigin)>;

}  // namespace server
