// SPDX-License-Identifier: MIT
#include "server/replication/follower/follower_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

namespace server {
namespace {

// A replica sends little: a peer with so much unread input does not read.
constexpr size_t kUnsentBytesMax = size_t{1} << 20;

core::Error failed(std::string_view what, int error_number) {
  return {fmt::format("{}: {}", what, std::generic_category().message(error_number))};
}

}  // namespace

Waker::Waker() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Waker::~Waker() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Waker::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor_, &one, sizeof one);
}

void Waker::wait(int64_t timeout_ms) {
  pollfd entry{descriptor_, POLLIN, 0};
  (void)::poll(&entry, 1, static_cast<int>(timeout_ms));
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(descriptor_, &count, sizeof count);
}

FollowerSocket::~FollowerSocket() {
  close();
}

void FollowerSocket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

core::Result<> FollowerSocket::connect(const std::string& host, uint16_t port, int64_t timeout_ms) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0) return core::Error{fmt::format("'{}': {}", host, ::gai_strerror(code))};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(list, &::freeaddrinfo);
  core::Result<> result = core::Error{"no address"};
  for (const addrinfo* address = list; address != nullptr; address = address->ai_next) {
    result = connect_to(*address, timeout_ms);
    if (result) return result;
    close();
  }
  return result;
}

core::Result<> FollowerSocket::connect_to(const addrinfo& address, int64_t timeout_ms) {
  descriptor_ = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor_ < 0) return failed("socket", errno);
  const int on = 1;
  (void)::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)::setsockopt(descriptor_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (::connect(descriptor_, address.ai_addr, address.ai_addrlen) == 0) return {};
  if (errno != EINPROGRESS) return failed("connect", errno);
  if (wait_for(POLLOUT, timeout_ms) == Ready::kNot) return core::Error{"connect: no answer"};
  int error_number = 0;
  socklen_t size = sizeof error_number;
  (void)::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error_number, &size);
  if (error_number != 0) return failed("connect", error_number);
  return {};
}

FollowerSocket::Ready FollowerSocket::wait_for(short events, int64_t timeout_ms) {
  std::array<pollfd, 2> entries{{{descriptor_, events, 0}, {waker_.descriptor(), POLLIN, 0}}};
  const int count = ::poll(entries.data(), entries.size(), static_cast<int>(timeout_ms));
  if (count <= 0 || entries[0].revents == 0) return Ready::kNot;
  return Ready::kSocket;
}

core::Result<> FollowerSocket::send(std::string_view bytes) {
  unsent_.append(bytes);
  while (!unsent_.empty()) {
    const ssize_t sent = ::send(descriptor_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0) return failed("send", errno);
    unsent_.erase(0, static_cast<size_t>(sent));
  }
  if (unsent_.size() > kUnsentBytesMax) return core::Error{"the leader takes nothing"};
  return {};
}

core::Result<size_t> FollowerSocket::receive(std::span<char> out, int64_t timeout_ms) {
  if (wait_for(POLLIN, timeout_ms) == Ready::kNot) return size_t{0};
  const ssize_t got = ::recv(descriptor_, out.data(), out.size(), 0);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0) return core::Error{"the leader closed the connection"};
  if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) return size_t{0};
  return failed("receive", errno);
}

}  // namespace server
