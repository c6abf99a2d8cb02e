// SPDX-License-Identifier: MIT
//
// What a connection does with the messages of the channels that its session listens to.
#include <algorithm>

#include "server/net/connection.h"

namespace server::net {

size_t Connection::add_message(const Message& message, uint64_t serial) {
  if (!open_ || wait_ == Wait::kLastReplies ||
      !session_->subscriptions.contains(message.kind, message.name, serial)) {
    return 0;
  }
  unsent_.append(session_->resp == protocol::RespVersion::kResp3 ? ">" : "*");
  unsent_.append(message.head);
  unsent_.append(*message.payload);
  return message.size_bytes();
}

void Connection::send_messages() {
  if (!open_) return;
  output_peak_bytes_ = std::max(output_peak_bytes_, unsent_.size());
  // A socket that has been full is told to be writable again; until then trying is in vain.
  if (wait_ == Wait::kLog || (interest_ & EPOLLOUT) != 0) {
    close_if_over_output_limit();
  } else {
    send_unsent();
  }
  if (open_) publish_buffer_sizes();
}

}  // namespace server::net
