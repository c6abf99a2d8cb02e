// SPDX-License-Identifier: MIT
//
// check_health: checks whether the server that a configuration describes can serve clients.
// Containers use it as their health check, so they need no other program for that.
//
// Thread safety: any thread may call the functions, which keep no state.
// Source: HEALTHCHECK, https://docs.docker.com/reference/dockerfile/#healthcheck.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace server {

class Config;

// HealthQuestion: the subject of a health check. kServes: whether the server serves clients.
// kLives: whether it is at least alive. A server that is loading, has a full disk, or has reached
// maxclients is alive: restarting it would not help.
enum class HealthQuestion { kServes, kLives };

struct HealthLimits {
  std::chrono::seconds answer{2};  // timeout of each step: connecting, sending and receiving

  // A server that hangs at one address hangs at all addresses. So once the attempts together have
  // taken longer than this, no other address is tried.
  std::chrono::seconds slow{1};
};

struct Health {
  bool is_healthy = false;
  std::string text;  // the result in one line, for the user
};

// Removes the argument `--alive` if it directly follows `--health-check`. `arguments` starts with
// the program's name.
HealthQuestion take_health_question(std::vector<const char*>& arguments);

// Sends PING to the server on this machine: to its port, or else its TLS port, or else its unix
// socket. Tries the addresses of `bind` one after the other until one is healthy. Logs in if the
// configuration has `requirepass`. A server that demands another password counts as serving. A
// server that is loading does not. With the default limits the check takes at most about five
// seconds.
Health check_health(const Config& config, HealthQuestion question = HealthQuestion::kServes,
                    const HealthLimits& limits = {});

}  // namespace server
