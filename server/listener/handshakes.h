// SPDX-License-Identifier: MIT
//
// Handshakes: the TLS handshakes under way, bounded in time and in number.
//
// A peer that has not finished its handshake is unknown, yet it costs memory and a place among the
// clients. It has ten seconds to finish. Such peers get half of all clients' places. When those are
// full, the oldest peer yields to the next, once it has had a second. Younger peers are kept: after
// a restart all clients connect at once, and new ones wait in the kernel's queue.
//
// Thread safety: belongs to I/O thread 0.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "server/commands/services.h"
#include "server/session/session.h"

namespace server::net {

class Handshakes {
 public:
  explicit Handshakes(const Services& services) : services_(services) {}

  // Whether another may begin now; ends the oldest ones if that helps.
  bool make_room();
  // REQUIRES: the session has a TLS stream and is registered.
  void add(const std::shared_ptr<Session>& session);
  // Ends those that take too long.
  void end_late();

 private:
  struct Handshake {
    uint64_t session_id;
    int64_t begun_us;
  };

  // Drops the ended handshakes at the front. Null when none is left.
  std::shared_ptr<Session> oldest();
  void drop_ended();
  // False when there is none that began so early.
  bool end_oldest(int64_t begun_before_us);

  const Services& services_;
  std::deque<Handshake> under_way_;  // the oldest first; some may have ended
};

}  // namespace server::net
