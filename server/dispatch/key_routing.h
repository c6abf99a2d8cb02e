// SPDX-License-Identifier: MIT
//
// KeyRouting: finds the server of the cluster that serves a client's command, by the command's
// keys. Outside a cluster, this server serves every command.
//
// Thread safety: each object belongs to the thread that runs its command.
// Source: docs/cluster.md.
#pragma once

#include <cstdint>

#include "core/result.h"

namespace server {

class Context;
namespace cluster {
class View;
enum class Route : uint8_t;
}  // namespace cluster

// Returns the view of the cluster that the client's thread uses. REQUIRES: this server is a node of
// a cluster.
const cluster::View& view_of(const Context& ctx);

struct KeyRouting {
  cluster::Route route{};
  unsigned slot = 0;
  const cluster::View* view = nullptr;  // cluster view used for routing; null outside a cluster

  // Finds the server that serves the command. `flags` are those of the command's row. For EXEC they
  // include the flags of the queued commands.
  static KeyRouting of(const Context& ctx, uint32_t flags);

  // Returns whether this server serves the command, now or after a wait. In MULTI, a command that
  // must wait is still queued, and EXEC waits.
  bool is_served() const;
  // Returns whether the client must wait until this server serves the keys.
  bool is_held() const;
  // Returns the error for keys that this server does not serve. Its code is kMisrouted.
  core::Error error(const Context& ctx) const;
  // Returns whether a command that was routed here fails only because this server has just become a
  // replica. The cluster view that names the new leader follows soon, so the client waits.
  bool awaits_view(const core::Error& error) const;
};

}  // namespace server
