// SPDX-License-Identifier: MIT
//
// ListeningSocket: accepts the peers that connect to one address.
//
// Invariants: while the process has no descriptors left, or the handler no room, accepting pauses
// and does not spin; a program started by us inherits no socket; a unix socket is never reachable
// with wider permissions than asked for, not even between bind and chmod.
// Thread safety: all members from any thread. The handler runs on that of the io_context, may not
// call the socket, and must be valid until close() has returned.
// Source: accept(2), listen(2), unix(7).
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "core/result.h"
#include "server/loop/asio_types.h"

namespace server::net {

class ListeningSocket : public std::enable_shared_from_this<ListeningSocket> {
 public:
  struct Handler {
    // Takes over the descriptor of a socket that does not block.
    std::function<void(int descriptor)> accept;
    // Asked before a peer is accepted; while it says no, peers wait in the system's queue.
    std::function<bool()> has_room = [] { return true; };
    // Peers accepted at once: the thread's other work waits meanwhile.
    std::function<int64_t()> accepts_per_round_max = [] { return 256; };
  };
  using Opened = core::Result<std::shared_ptr<ListeningSocket>>;

  // "*" and "::*" stand for all addresses of IPv4 and of IPv6. Errors: an address that nobody has,
  // or that is taken.
  static Opened open_tcp(asio::io_context& context, const std::string& address, uint16_t port,
                         int backlog);
  // The peers that may connect to a unix socket.
  struct UnixAccess {
    unsigned permissions = 0;  // 0 for those that the umask leaves
    std::string group{};       // a name or a number; empty for the group of the process
  };
  // Replaces a socket that an earlier run has left, never one that another process listens on, nor
  // a file of another kind. Errors: a path that is too long or taken, a group that does not exist
  // or that this process may not give the socket to.
  static Opened open_unix(asio::io_context& context, const std::string& path,
                          const UnixAccess& access, int backlog);
  explicit ListeningSocket(asio::io_context& context) : acceptor_(context), pause_(context) {}

  // Begins to accept.
  void start(const Handler& handler);
  // Accepts no more and frees the address for others, as long as resume() has not been called.
  void suspend();
  // Takes the address again. Errors: another one has it.
  core::Result<> resume(int backlog);
  void close();

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol, Executor>;

  // What is common to both kinds. `error`: of the steps before.
  Opened listen(int backlog, ErrorCode error);
  // REQUIRES for both: mutex_.
  void await();
  bool accept_waiting();

  std::mutex mutex_;  // guards all below
  Acceptor acceptor_;
  Handler handler_;
  bool is_awaited_ = false;
  bool is_suspended_ = false;
  Timer pause_;
};

}  // namespace server::net
