// SPDX-License-Identifier: MIT
#include "server/base/transport/stream.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
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

Stream::Outcome SocketStream::receive(std::span<char> first, std::span<char> second,
                                      size_t size_max) {
  assert(first.size() + second.size() >= size_max);
  if (first.empty()) return outcome_of(::recv(descriptor_, second.data(), size_max, 0));
  if (first.size() >= size_max) return outcome_of(::recv(descriptor_, first.data(), size_max, 0));
  const std::array<iovec, 2> parts{
      {{first.data(), first.size()}, {second.data(), size_max - first.size()}}};
  return outcome_of(::readv(descriptor_, parts.data(), int{parts.size()}));
}

Stream::Outcome SocketStream::send(std::string_view bytes) {
  if (bytes.empty()) return {Status::kLater};
  return outcome_of(::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

void SocketStream::close() {
  if (descriptor_ != kClosed) ::close(std::exchange(descriptor_, kClosed));
}

}  // namespace server
