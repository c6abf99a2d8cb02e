// SPDX-License-Identifier: MIT
#include "server/replication/leader/socket_sink.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace server {

SocketSink::SocketSink(const std::vector<int>& descriptors, int64_t timeout_s,
                       const core::Clock& clock)
    : timeout_us_(timeout_s * 1'000'000), clock_(clock) {
  for (const int descriptor : descriptors) receivers_.push_back({descriptor});
}

core::Result<> SocketSink::write(std::string_view bytes) {
  const int64_t now_us = clock_.monotonic_us();
  for (Receiver& receiver : receivers_) {
    receiver.sent = 0;
    receiver.moved_us = now_us;
  }
  while (true) {
    for (Receiver& receiver : receivers_) send(receiver, bytes);
    drop_slow(bytes.size(), now_us);
    std::erase_if(receivers_, [](const Receiver& receiver) { return receiver.is_gone; });
    if (receivers_.empty()) return core::Error{"ERR no replica is left to send to"};
    const bool is_done = std::ranges::all_of(
        receivers_, [&](const Receiver& receiver) { return receiver.sent == bytes.size(); });
    if (is_done) return {};
    await_room(bytes.size());
  }
}

void SocketSink::send(Receiver& receiver, std::string_view bytes) {
  if (receiver.sent == bytes.size()) return;
  const std::string_view rest = bytes.substr(receiver.sent);
  const ssize_t size =
      ::send(receiver.descriptor, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (size > 0) {
    receiver.sent += static_cast<size_t>(size);
    receiver.moved_us = clock_.monotonic_us();
    return;
  }
  const bool is_full = size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  if (!is_full) shut_out(receiver);
}

void SocketSink::shut_out(Receiver& receiver) {
  ::shutdown(receiver.descriptor, SHUT_RDWR);
  receiver.is_gone = true;
}

void SocketSink::drop_slow(size_t size, int64_t begun_us) {
  const int64_t now_us = clock_.monotonic_us();
  const bool others_wait = std::ranges::any_of(
      receivers_, [&](const Receiver& receiver) { return receiver.sent == size; });
  for (Receiver& receiver : receivers_) {
    if (receiver.sent == size || receiver.is_gone) continue;
    const bool holds_up_others = others_wait && now_us - begun_us > timeout_us_ / 2;
    if (holds_up_others || now_us - receiver.moved_us > timeout_us_) shut_out(receiver);
  }
}

void SocketSink::await_room(size_t size) {
  std::vector<pollfd> waited;
  for (const Receiver& receiver : receivers_) {
    if (receiver.sent < size) waited.push_back({receiver.descriptor, POLLOUT, 0});
  }
  // Limit on the time of one poll(), so that drop_slow() is called often enough.
  constexpr int64_t kLongestPauseMs = 1000;
  const int64_t pause_ms = std::clamp<int64_t>(timeout_us_ / 10'000, 1, kLongestPauseMs);
  (void)::poll(waited.data(), waited.size(), static_cast<int>(pause_ms));
}

}  // namespace server
