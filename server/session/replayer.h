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

enum class CommandOrigin : uint8_t;

class Replayer {
 public:
  virtual ~Replayer() = default;
  // Executes the command. Returns its reply, a view that is valid until the next call.
  virtual std::string_view execute(std::span<const std::string_view> arguments) = 0;
};
using ReplayerFactory = std::function<std::unique_ptr<Replayer>(CommandOrigin)>;

}  // namespace server
