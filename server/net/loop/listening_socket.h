// SPDX-License-Identifier: MIT
//
// ListeningSocket: accepts the peers that connect to one address.
//
// Invariants: no peer is accepted while the process has no free descriptors, or while has_room() of
// the handler returns false. While accepting is paused, the thread does not spin. Child programs
// inherit no socket. A unix socket never has wider permissions than requested, not even between
// bind and chmod.
// Thread safety: all members may be called from any thread. The handler runs on the thread of the
// io_context. The handler must not call the socket's members, and must be valid until close() has
// returned.
// Source: accept(2), listen(2), unix(7).
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "core/result.h"
#include "server/net/loop/asio_types.h"

namespace server::net {

class ListeningSocket : public std::enable_shared_from_this<ListeningSocket> {
 public:
  struct Handler {
    // Called with the descriptor of a non-blocking socket. The function takes ownership of the
    // descriptor.
    std::function<void(int descriptor)> accept;
    // Called before a peer is accepted. While the function returns false, peers wait in the
    // system's queue.
    std::function<bool()> has_room = [] { return true; };
    // Limit on the number of peers that are accepted before the thread does its other work.
    std::function<int64_t()> accepts_per_round_max = [] { return 256; };
  };
  using Opened = core::Result<std::shared_ptr<ListeningSocket>>;

  // Listens on a TCP address. "*" and "::*" mean all addresses of IPv4 and of IPv6. Errors: the
  // address cannot be resolved, is not an address of this machine, or is in use.
  static Opened open_tcp(asio::io_context& context, const std::string& address, uint16_t port,
                         int backlog);
  // UnixAccess: the permissions and the group of a unix socket.
  struct UnixAccess {
    // Permissions of the socket file; 0 keeps those that the umask leaves.
    unsigned permissions = 0;
    // Name or number of the group of the socket file; empty for the group of the process.
    std::string group{};
  };
  // Listens on a unix socket. Replaces a socket file left by an earlier run, but no socket of a
  // running process and no file of another kind. Errors: the path is too long or in use; the group
  // does not exist, or this process may not assign it.
  static Opened open_unix(asio::io_context& context, const std::string& path,
                          const UnixAccess& access, int backlog);
  explicit ListeningSocket(asio::io_context& context) : acceptor_(context), pause_(context) {}

  // Starts to accept.
  void start(const Handler& handler);
  // Stops accepting and frees the address for others, until resume() is called.
  void suspend();
  // Listens on the address again. Errors: the address is in use.
  core::Result<> resume(int backlog);
  void close();

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol, Executor>;

  // The common part of open_tcp() and open_unix(). `error` is the result of the steps that the
  // caller has already done.
  Opened listen(int backlog, ErrorCode error);
  // These functions require that the caller holds mutex_.
  void await();
  bool accept_waiting();

  std::mutex mutex_;  // this mutex guards the members below
  Acceptor acceptor_;
  Handler handler_;
  bool is_awaited_ = false;
  bool is_suspended_ = false;
  Timer pause_;
};

}  // namespace server::net
