// SPDX-License-Identifier: MIT
#include "server/net/handshakes.h"

#include <algorithm>

#include "core/clock.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/transport/tls_stream.h"
#include "server/session/clients.h"

namespace server::net {
namespace {

constexpr int64_t kTimeMaxUs = 10 * core::kSecondUs;
constexpr int64_t kTimeMinUs = core::kSecondUs;

bool is_under_way(const std::shared_ptr<Client>& client) {
  return client != nullptr && client->socket.tls->phase() == TlsStream::Phase::kHandshake &&
         !client->kill_requested;
}

}  // namespace

std::shared_ptr<Client> Handshakes::oldest() {
  while (!under_way_.empty()) {
    auto client = services_.clients.find(under_way_.front().client_id);
    if (is_under_way(client)) return client;
    under_way_.pop_front();
  }
  return nullptr;
}

void Handshakes::drop_ended() {
  std::erase_if(under_way_, [this](const Handshake& handshake) {
    return !is_under_way(services_.clients.find(handshake.client_id));
  });
}

bool Handshakes::make_room() {
  const auto count_max =
      static_cast<size_t>(std::max<int64_t>(1, services_.config.max_clients() / 2));
  if (under_way_.size() < count_max) return true;
  drop_ended();
  // Ends the oldest handshakes until about an eighth of the room is free, but none that has run for
  // less than kTimeMinUs. The next calls then find room without checking all handshakes.
  const size_t count_wanted = count_max - 1 - count_max / 8;
  const int64_t now_us = services_.clock.monotonic_us();
  while (under_way_.size() > count_wanted && end_oldest(now_us - kTimeMinUs)) {
  }
  return under_way_.size() < count_max;
}

bool Handshakes::end_oldest(int64_t begun_before_us) {
  const auto client = oldest();
  if (client == nullptr || under_way_.front().begun_us > begun_before_us) return false;
  log_verbose("Closing client {}: its TLS handshake takes too long", client->address);
  client->request_kill();
  under_way_.pop_front();
  return true;
}

void Handshakes::add(const std::shared_ptr<Client>& client) {
  under_way_.push_back({client->id, services_.clock.monotonic_us()});
}

void Handshakes::end_late() {
  const int64_t now_us = services_.clock.monotonic_us();
  while (end_oldest(now_us - kTimeMaxUs)) {
  }
}

}  // namespace server::net
