// SPDX-License-Identifier: MIT
#include "server/transport/stream.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <utility>

namespace server {
namespace {

Stream::Outcome outcome_of(ssize_t size) {
  if (size > 0) return {Stream::Status::kDone, static_cast<size_t>(size)};
  if (size == 0) return {Stream::Status::kEnd};
  const bool is_temporary = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return {is_temporary ? Stream::Status::kLater : Stream::Status::kBroken};
}

}  // namespace

Stream::Outcome SocketStream::receive(std::span<char> room, size_t size_max) {
  assert(room.size() >= size_max);
  return outcome_of(::recv(descriptor_, room.data(), size_max, 0));
}

Stream::Outcome SocketStream::send(std::string_view bytes) {
  if (bytes.empty()) return {Status::kLater};
  return outcome_of(::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

void SocketStream::close() {
  if (descriptor_ != kClosed) ::close(std::exchange(descriptor_, kClosed));
}

}  // namespace server
