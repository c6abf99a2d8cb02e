// SPDX-License-Identifier: MIT
//
// check_health: asks the server that a configuration describes whether it serves, as a container's
// health check does, without another program.
//
// Thread safety: a free function.
// Source: HEALTHCHECK, https://docs.docker.com/reference/dockerfile/#healthcheck.
#pragma once

#include <string>

namespace server {

class Config;

struct Health {
  bool is_healthy = false;
  std::string text;  // for people, one line
};

// Sends PING to the port, the TLS port or the unix socket, whichever comes first in the
// configuration, on this machine. A server that wants a password serves; one that loads does not
// yet. Takes at most about five seconds.
Health check_health(const Config& config);

}  // namespace server
