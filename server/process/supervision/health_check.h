// SPDX-License-Identifier: MIT
//
// check_health: asks the server that a configuration describes whether it serves, as a container's
// health check does, without another program.
//
// Thread safety: a free function.
// Source: HEALTHCHECK, https://docs.docker.com/reference/dockerfile/#healthcheck.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace server {

class Config;

// What is asked of a server: that it serves, or only that it lives. One that loads, has a full disk
// or no room for another client lives: to start it again would make nothing better.
enum class HealthQuestion { kServes, kLives };

struct HealthLimits {
  std::chrono::seconds answer{2};  // for connecting, sending and receiving, each
  // A server that hangs at one address hangs at the others, too: once asking has taken longer than
  // this, no other address is asked.
  std::chrono::seconds slow{1};
};

struct Health {
  bool is_healthy = false;
  std::string text;  // for people, one line
};

// Takes the word `--alive` out of the arguments, the program's name first, where it comes right
// behind `--health-check`.
HealthQuestion take_health_question(std::vector<const char*>& arguments);

// Sends PING to the port, the TLS port or the unix socket, whichever comes first in the
// configuration, on this machine: at the addresses of `bind` one after the other, until one is
// healthy. A server that wants a password serves; one that loads does not yet. With the default
// limits it takes at most about five seconds.
Health check_health(const Config& config, HealthQuestion question = HealthQuestion::kServes,
                    const HealthLimits& limits = {});

}  // namespace server
