// SPDX-License-Identifier: MIT
#include "server/session/invalidation_news.h"

#include <fmt/format.h>

#include "server/session/clients.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/pubsub/tracking.h"
#include "server/session/session.h"

namespace server {
namespace {

using protocol::RespVersion;

// Returns whether the client still wants the invalidation. Its tracking options may have changed
// since it read the key.
bool wants(const ClientTracking& tracking, const Invalidation& invalidation, uint64_t session_id) {
  if (invalidation.keys.empty()) return true;
  if (tracking.is_broadcast != invalidation.is_broadcast) return false;
  return !tracking.no_loop || invalidation.writer != session_id;
}

std::string broken_redirect_news(Session& session, ClientTracking& tracking) {
  tracking.is_broken = true;
  session.subscriptions.show_tracking();
  if (session.client->resp != RespVersion::kResp3) return "";
  return fmt::format(">2\r\n$21\r\ntracking-redir-broken\r\n:{}\r\n", tracking.redirect);
}

// Writes the message. `keys` is a RESP array, or empty if all keys were deleted.
std::string news(const Session& session, bool is_redirected, const std::string& keys) {
  if (session.client->resp == RespVersion::kResp3) {
    return ">2\r\n$10\r\ninvalidate\r\n" + (keys.empty() ? "_\r\n" : keys);
  }
  // A RESP2 client gets invalidations as pub/sub messages. Unless it has subscribed to a channel,
  // it would mistake them for replies, so none are sent.
  if (!is_redirected || !session.subscriptions.any()) return "";
  return "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n" +
         (keys.empty() ? "$-1\r\n" : keys);
}

}  // namespace

std::string invalidation_news(PubSub& pubsub, const Clients& clients, Session& session,
                              const Delivery& delivery) {
  const Invalidation& invalidation = *delivery.invalidation;
  if (delivery.is_redirected) return news(session, true, invalidation.keys);
  ClientTracking* const tracking = session.subscriptions.tracking();
  if (tracking == nullptr || !wants(*tracking, invalidation, session.client->id)) return "";
  if (tracking->redirect == 0) return news(session, false, invalidation.keys);
  const auto target = clients.find(tracking->redirect);
  if (target == nullptr) return broken_redirect_news(session, *tracking);
  pubsub.post(
      target->thread_index,
      {.invalidation = delivery.invalidation, .receivers = {{target->id}}, .is_redirected = true});
  return "";
}

std::string take_invalidation_news(PubSub& pubsub, Tracking& tracking, Session& session) {
  const ClientTracking* const wanted = session.subscriptions.tracking();
  if (wanted == nullptr || wanted->redirect != 0) return "";
  // Thread 0's list of changed keys has the keys that the server itself has changed, for example
  // because they expired. So the keys of that list are broadcast before this
  // session's invalidations are taken.
  if (wanted->is_broadcast) tracking.send_broadcasts(0);
  std::string bytes;
  const Client& client = *session.client;
  for (const auto& invalidation : pubsub.take_invalidations(client.thread_index, client.id)) {
    if (wants(*wanted, *invalidation, client.id)) bytes += news(session, false, invalidation->keys);
  }
  return bytes;
}

}  // namespace server
