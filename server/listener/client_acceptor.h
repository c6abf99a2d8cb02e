// SPDX-License-Identifier: MIT
//
// ClientAcceptor: makes a client of an accepted socket, on one of the I/O threads, or refuses it.
//
// Invariants: a client is counted when it is accepted, so that a storm of them cannot pass
// maxclients before the threads catch up.
// Thread safety: belongs to I/O thread 0.
// Source: Redis' acceptCommonHandler().
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/commands/services.h"
#include "server/listener/handshakes.h"
#include "server/net/io_threads.h"
#include "server/transport/tls.h"

namespace server::net {

class ClientAcceptor {
 public:
  enum class Kind : uint8_t { kUnix, kTcp, kTls };

  ClientAcceptor(IoThreads& threads, Services& services, const Tls& tls)
      : threads_(threads), services_(services), tls_(tls), handshakes_(services) {}

  // Whether a client of this kind may come now.
  bool has_room(Kind kind) { return kind != Kind::kTls || handshakes_.make_room(); }
  // Takes over the descriptor.
  void accept(int descriptor, Kind kind);
  // Several times a second: ends handshakes that take too long.
  void end_late_handshakes() { handshakes_.end_late(); }

 private:
  // The reply for a client that must not be served; empty for the others.
  std::string refusal(int descriptor, Kind kind) const;
  std::shared_ptr<Session> new_session(int descriptor, Kind kind) const;

  IoThreads& threads_;
  Services& services_;
  const Tls& tls_;
  Handshakes handshakes_;
};

}  // namespace server::net
