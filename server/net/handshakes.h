// SPDX-License-Identifier: MIT
//
// Handshakes: the running TLS handshakes, limited in time and number.
//
// A peer in its handshake is not authenticated, but it uses memory and counts towards maxclients. A
// handshake may take ten seconds. At most half of maxclients may be in a handshake. At that
// limit, a new peer replaces the oldest handshake if that handshake has lasted at least a second.
// Otherwise new peers wait in the kernel's queue. So clients that all connect at the same time
// after a restart do not end each other's handshakes.
//
// Thread safety: belongs to I/O thread 0.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "server/commands/services.h"
#include "server/session/client.h"

namespace server::net {

class Handshakes {
 public:
  explicit Handshakes(const Services& services) : services_(services) {}

  // Returns whether another handshake may begin now. If the limit is reached, the function first
  // ends some of the oldest handshakes, but none that has lasted less than a second.
  bool make_room();
  // Records that the client's handshake begins now. REQUIRES: the client has a TLS stream and is
  // registered.
  void add(const std::shared_ptr<Client>& client);
  // Ends handshakes that take too long.
  void end_late();

 private:
  struct Handshake {
    uint64_t client_id;
    int64_t begun_us;
  };

  // Drops ended handshakes at the front, and returns the oldest running one; null if there is none.
  std::shared_ptr<Client> oldest();
  void drop_ended();
  // Ends the oldest handshake if it began at `begun_before_us` or earlier. Returns whether it ended
  // a handshake.
  bool end_oldest(int64_t begun_before_us);

  const Services& services_;
  std::deque<Handshake> under_way_;  // running handshakes, the oldest first; some may have ended
};

}  // namespace server::net
