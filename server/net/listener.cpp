// SPDX-License-Identifier: MIT
#include "server/net/listener.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "server/base/config/config.h"
#include "server/base/config/special_values.h"
#include "server/base/config/words.h"
#include "server/base/log/log.h"
#include "server/net/loop/listening_socket.h"

namespace server::net {

core::Result<> Listener::open() {
  const std::scoped_lock lock(mutex_);
  if (auto opened = open_tcp_endpoints(endpoints_, ", aborting"); !opened) return opened;
  if (auto opened = open_unix(); !opened) return opened;
  if (endpoints_.empty()) return core::Error{"Configured to not listen anywhere, exiting."};
  follow_options();
  return {};
}

void Listener::follow_options() {
  const auto rebind_or = [this](std::string_view error) {
    return [this, error]() -> core::Result<> {
      if (rebind()) return {};
      return core::Error{std::string(error)};
    };
  };
  config_.on_change(OptionId::kBind, rebind_or(kAddressesFail));
  for (const OptionId id : {OptionId::kPort, OptionId::kTlsPort}) {
    config_.on_change(id, rebind_or("Unable to listen on this port. Check server logs."));
  }
}

std::vector<Listener::Place> Listener::wanted_places() const {
  std::vector<Place> wanted;
  for (const auto& [kind, port] :
       {std::pair{Kind::kTcp, config_.port()},
        std::pair{Kind::kTls, static_cast<uint16_t>(config_.integer(OptionId::kTlsPort))}}) {
    if (port == 0) continue;
    for (std::string address : split_at_spaces(config_.text(OptionId::kBind))) {
      const bool is_optional = address.starts_with('-');
      if (is_optional) address.erase(0, 1);
      wanted.push_back({kind, std::move(address), port, is_optional});
    }
  }
  return wanted;
}

int Listener::backlog() const {
  return static_cast<int>(config_.integer(OptionId::kTcpBacklog));
}

core::Result<> Listener::open_unix() {
  constexpr int kBacklog = 1024;
  const std::string path = config_.text(OptionId::kUnixSocket);
  if (path.empty()) return {};
  const ListeningSocket::UnixAccess access{
      static_cast<unsigned>(config_.integer(OptionId::kUnixSocketPerm)),
      config_.text(OptionId::kUnixSocketGroup)};
  auto opened = ListeningSocket::open_unix(threads_.at(0).context, path, access, kBacklog);
  if (!opened) return opened.error();
  unix_path_ = path;
  endpoints_.push_back({{}, std::move(*opened)});
  return {};
}

core::Result<> Listener::open_tcp_endpoints(Endpoints& endpoints, std::string_view outcome) {
  for (const Place& place : wanted_places()) {
    const auto is_here = [&](const Endpoint& endpoint) { return endpoint.place.is_same(place); };
    if (std::ranges::any_of(endpoints, is_here)) continue;
    auto opened =
        ListeningSocket::open_tcp(threads_.at(0).context, place.address, place.port, backlog());
    if (opened) {
      endpoints.push_back({place, std::move(*opened)});
    } else if (place.is_optional) {
      log_verbose("Not listening on optional address: {}", opened.error().message);
    } else {
      // The error text is that of Redis, because test suites look for it.
      return core::Error{fmt::format("Failed listening on port {} ({}){}: {}", place.port,
                                     place.kind == Kind::kTls ? "TLS" : "TCP", outcome,
                                     opened.error().message)};
    }
  }
  return {};
}

core::Result<> Listener::rebind() {
  const auto wanted = wanted_places();
  const std::scoped_lock lock(mutex_);
  // Unwanted sockets are suspended before the new sockets are opened, because `*` and an address on
  // the same port exclude each other.
  const auto stays = [&wanted](const Endpoint& here) {
    return here.place.kind == Kind::kUnix || std::ranges::any_of(wanted, [&](const Place& place) {
             return place.is_same(here.place);
           });
  };
  const auto kept_end = std::stable_partition(endpoints_.begin(), endpoints_.end(), stays);
  Endpoints retired(kept_end, endpoints_.end());
  endpoints_.erase(kept_end, endpoints_.end());
  for (const Endpoint& endpoint : retired) endpoint.socket->suspend();
  const size_t kept_count = endpoints_.size();
  auto opened = open_tcp_endpoints(endpoints_, "");
  if (!opened) {
    log_warning("{}", opened.error().message);
    for (size_t i = kept_count; i < endpoints_.size(); ++i) endpoints_[i].socket->close();
    endpoints_.resize(kept_count);
    for (Endpoint& endpoint : std::exchange(retired, {})) {
      if (const auto resumed = endpoint.socket->resume(backlog()); !resumed) {
        log_error("Cannot listen on {}:{} again: {}", endpoint.place.address, endpoint.place.port,
                  resumed.error().message);
      }
      endpoints_.push_back(std::move(endpoint));
    }
  }
  for (const Endpoint& endpoint : retired) endpoint.socket->close();
  accept();
  return opened;
}

void Listener::start() {
  const std::scoped_lock lock(mutex_);
  accept();
}

void Listener::accept() {
  for (const Endpoint& endpoint : endpoints_) {
    const Kind kind = endpoint.place.kind;
    endpoint.socket->start(
        {.accept = [this, kind](int descriptor) { clients_.accept(descriptor, kind); },
         .has_room = [this, kind] { return clients_.has_room(kind); },
         .accepts_per_round_max =
             [this, kind] {
               return config_.integer(kind == Kind::kTls ? OptionId::kMaxNewTlsConnections
                                                         : OptionId::kMaxNewConnections);
             }});
  }
}

void Listener::close() {
  const std::scoped_lock lock(mutex_);
  for (const Endpoint& endpoint : endpoints_) endpoint.socket->close();
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
  unix_path_.clear();
}

}  // namespace server::net
