// SPDX-License-Identifier: MIT
#include "server/net/client_acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "server/base/config/config.h"
#include "server/base/metrics/statistics.h"
#include "server/base/transport/tls_stream.h"
#include "server/net/connection.h"
#include "server/net/loop/socket_address.h"
#include "server/session/acl/users.h"
#include "server/session/clients.h"
#include "server/session/session_user.h"

namespace server::net {
namespace {

void set_option(int descriptor, int level, int name, int value) {
  // The result is ignored, because the connection also works without the option.
  (void)::setsockopt(descriptor, level, name, &value, sizeof value);
}

void set_tcp_options(int descriptor, int keepalive_s) {
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  if (keepalive_s <= 0) return;
  set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, keepalive_s);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, keepalive_s / 3));
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

std::string ClientAcceptor::refusal(int descriptor, Kind kind) const {
  if (services_.clients.count() >= static_cast<size_t>(services_.config.max_clients())) {
    return "-" + std::string(kTooManyClients) + "\r\n";
  }
  const bool open_to_all =
      services_.config.flag(OptionId::kProtectedMode) && services_.users.has_no_password();
  if (open_to_all && kind != Kind::kUnix &&
      !SocketAddress(descriptor, SocketAddress::End::kPeer).is_loopback()) {
    return "-DENIED Bloomery is running in protected mode because protected mode is enabled and "
           "no password is set. Connections are accepted from the loopback interface only. Set "
           "'requirepass', or 'protected-mode no' if the network is trusted, and connect again."
           "\r\n";
  }
  return "";
}

std::unique_ptr<Session> ClientAcceptor::new_session(int descriptor, Kind kind) const {
  auto session = std::make_unique<Session>(services_.clients.next_id());
  Client& client = *session->client;
  client.socket.descriptor = descriptor;
  client.socket.is_unix = kind == Kind::kUnix;
  if (kind == Kind::kTls) {
    client.socket.tls =
        std::make_shared<TlsStream>(tls_.server_context(), TlsStream::Side::kServer, descriptor);
  }
  if (kind == Kind::kUnix) {
    client.address = services_.config.text(OptionId::kUnixSocket) + ":0";
    client.local_address = client.address;
  } else {
    client.address = SocketAddress(descriptor, SocketAddress::End::kPeer).text();
    client.local_address = SocketAddress(descriptor, SocketAddress::End::kOwn).text();
  }
  client.created_us = services_.clock.monotonic_us();
  client.last_interaction_us = client.created_us;
  set_default_user(*session, services_.users);
  return session;
}

void ClientAcceptor::accept(int descriptor, Kind kind) {
  ThreadStatistics& counters = services_.statistics.thread(0);
  if (const std::string text = refusal(descriptor, kind); !text.empty()) {
    // A TLS client could not read an error reply before the handshake, so it gets none.
    if (kind != Kind::kTls) {
      (void)::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    ::close(descriptor);
    return counters.connections_rejected.add();
  }
  counters.connections_received.add();
  auto session = new_session(descriptor, kind);
  const std::shared_ptr<Client> client = session->client;
  if (kind != Kind::kUnix) {
    set_tcp_options(descriptor,
                    static_cast<int>(services_.config.integer(OptionId::kTcpKeepalive)));
  }
  IoThread& thread = threads_.next();
  client->thread_index = thread.index;
  client->view_index = thread.index;
  client->wake = [&thread, id = client->id] {
    thread.loop.post([&thread, id] {
      if (const auto connection = thread.connections.find(id)) connection->wake();
    });
  };
  services_.clients.add(client);
  if (kind == Kind::kTls) handshakes_.add(client);
  thread.loop.post([&thread, &services = services_, session = std::move(session)]() mutable {
    const uint64_t id = session->client->id;
    auto connection = std::make_shared<Connection>(thread, services, std::move(session));
    thread.connections.add(id, connection);
    connection->start();
  });
}

}  // namespace server::net
