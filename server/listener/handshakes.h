// SPDX-License-Identifier: MIT
//
// Handshakes: the TLS handshakes under way, bounded in time and in number.
//
// A peer that has not finished its handshake is nobody yet, and costs memory and a place among the
// clients. It has ten seconds for it. Of all clients' places such peers get half; when those are
// taken the oldest give way to the next, once they have had a second. Younger ones go on: after a
// restart all clients come at once, and wait in the kernel's queue meanwhile.
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

  // Drops what is at the front and has ended. Null when none is left.
  std::shared_ptr<Session> oldest();
  void drop_ended();
  // False when there is none that began so early.
  bool end_oldest(int64_t begun_before_us);

  const Services& services_;
  std::deque<Handshake> under_way_;  // the oldest first; some may have ended
};

}  // namespace server::net
