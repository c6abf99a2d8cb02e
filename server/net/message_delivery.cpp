// SPDX-License-Identifier: MIT
#include "server/net/message_delivery.h"

#include <string_view>

#include "server/net/connection.h"
#include "server/session/pubsub/pub_sub.h"

namespace server::net {
namespace {

// Limit on the bytes that are collected for all connections before they are sent. One send then
// covers many small messages. A message for ten thousand subscribers is sent in parts, so that the
// first subscribers need not wait for ten thousand copies.
constexpr size_t kGatheredBytesMax = size_t{1} << 20;
// After this many bytes, the thread does other work before it delivers more messages.
constexpr size_t kBytesPerCall = 4 * kGatheredBytesMax;

class Round {
 public:
  explicit Round(IoThread& thread) : thread_(thread) {}

  // Delivers one message, and returns the number of bytes added to unsent replies.
  size_t deliver(const Delivery& delivery) {
    size_t total = 0;
    for (const Delivery::Receiver& receiver : delivery.receivers) {
      const auto connection = thread_.connections.find(receiver.session_id);
      if (connection == nullptr) continue;
      const size_t size = connection->add_message(delivery, receiver.serial);
      if (size == 0) continue;
      total += size;
      gathered_ += size;
      if (receivers_.empty() || receivers_.back() != connection) receivers_.push_back(connection);
      if (gathered_ >= kGatheredBytesMax) send();
    }
    return total;
  }

  void send() {
    gathered_ = 0;
    // If a connection is listed twice, the first send_unsent() sends all its bytes, and the second
    // one has no effect.
    for (const auto& connection : receivers_) connection->send_unsent();
    receivers_.clear();
  }

 private:
  IoThread& thread_;
  std::vector<std::shared_ptr<Connection>> receivers_;
  size_t gathered_ = 0;
};

}  // namespace

void deliver_messages(IoThread& thread, PubSub& pubsub, Tracking& tracking) {
  tracking.send_broadcasts(thread.index);
  Round round(thread);
  size_t total = 0;
  bool is_done = false;
  while (!is_done && total < kBytesPerCall) {
    const auto delivery = pubsub.take(thread.index);
    is_done = !delivery.has_value();
    if (delivery) total += round.deliver(*delivery) + sizeof(Delivery);
  }
  round.send();
  // The messages that remain in the inbox are delivered after the tasks that already wait for this
  // thread.
  if (!is_done) thread.loop.post([&] { deliver_messages(thread, pubsub, tracking); });
}

void deliver_monitored(IoThread& thread, MonitorFeed& feed) {
  const MonitorFeed::Batch batch = feed.take(thread.index);
  const std::string_view lines = batch.lines;
  for (const MonitorFeed::Receiver& receiver : batch.receivers) {
    const auto connection = thread.connections.find(receiver.session_id);
    if (connection == nullptr) continue;
    connection->add_monitored(lines.substr(receiver.first_byte), batch.has_overflowed);
  }
}

}  // namespace server::net
