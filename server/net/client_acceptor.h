// SPDX-License-Identifier: MIT
//
// ClientAcceptor: hands an accepted socket to one of the I/O threads as a new client, or rejects
// it.
//
// Invariants: a client is counted when it is accepted, so that many simultaneous connections cannot
// exceed maxclients before the threads process them.
// Thread safety: belongs to I/O thread 0.
// Source: Redis' acceptCommonHandler().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/base/transport/tls.h"
#include "server/commands/services.h"
#include "server/net/handshakes.h"
#include "server/net/io_threads.h"

namespace server {
class Session;
}

namespace server::net {

inline constexpr std::string_view kTooManyClients = "ERR max number of clients reached";

class ClientAcceptor {
 public:
  enum class Kind : uint8_t { kUnix, kTcp, kTls };

  ClientAcceptor(IoThreads& threads, Services& services, const Tls& tls)
      : threads_(threads), services_(services), tls_(tls), handshakes_(services) {}

  // Returns whether a client of this kind can be accepted now.
  bool has_room(Kind kind) { return kind != Kind::kTls || handshakes_.make_room(); }
  // Accepts the client, and takes ownership of its descriptor.
  void accept(int descriptor, Kind kind);
  // Ends handshakes that take too long. Must be called several times a second.
  void end_late_handshakes() { handshakes_.end_late(); }

 private:
  // Returns the error reply for a client that must be rejected; empty if the client is accepted.
  std::string refusal(int descriptor, Kind kind) const;
  std::unique_ptr<Session> new_session(int descriptor, Kind kind) const;

  IoThreads& threads_;
  Services& services_;
  const Tls& tls_;
  Handshakes handshakes_;
};

}  // namespace server::net
