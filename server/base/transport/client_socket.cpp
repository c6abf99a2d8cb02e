// SPDX-License-Identifier: MIT
#include "server/base/transport/client_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>
#include <vector>

#include "server/base/log/log.h"
#include "server/base/process/waker.h"
#include "server/base/transport/tls_stream.h"

namespace server {
namespace {

// Limit on the unsent bytes of send(). A replica sends little, so a leader with more unread bytes
// has stopped reading.
constexpr size_t kUnsentBytesMax = size_t{1} << 20;
constexpr size_t kHandshakeReadBytes = size_t{16} << 10;
constexpr const char* kNoAnswer = "no answer in time";
constexpr const char* kPeerClosed = "the connection was closed";

core::Error system_error(int error_number) {
  return {std::generic_category().message(error_number)};
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// Returns the addresses of a host; null if there are none, with the reason in `code`.
Addresses look_up(const std::string& host, const char* port, int family, int& code) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  code = ::getaddrinfo(host.c_str(), port, &hints, &list);
  return {code == 0 ? list : nullptr, &::freeaddrinfo};
}

bool bind_to(int descriptor, const std::string& host, int family) {
  int code = 0;
  const Addresses addresses = look_up(host, nullptr, family, code);
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    if (::bind(descriptor, each->ai_addr, each->ai_addrlen) == 0) return true;
  }
  return false;
}

// Binds the socket to the server's address, with any port. bind() rejects the address of another
// machine, so the connection can only reach a server on this machine.
bool bind_to_own(int descriptor, const sockaddr& address, size_t size) {
  // IP_BIND_ADDRESS_NO_PORT makes connect(), rather than bind(), choose the source port, so that
  // the sockets do not use up the ports of this machine.
  const int on = 1;
  (void)::setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  sockaddr_storage own{};
  std::memcpy(&own, &address, size);
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  std::memset(reinterpret_cast<char*>(&own) + offsetof(sockaddr_in, sin_port), 0,
              sizeof(in_port_t));
  return ::bind(descriptor, reinterpret_cast<const sockaddr*>(&own),
                static_cast<socklen_t>(size)) == 0;
}

}  // namespace

core::Result<> ClientSocket::connect(const Target& target, const WaitLimit& limit) {
  if (target.uses_tls && target.tls == nullptr) return core::Error{"TLS is not configured"};
  if (!target.path.empty()) return connect_to_path(target, limit);
  int code = 0;
  const Addresses addresses =
      look_up(target.host, std::to_string(target.port).c_str(), AF_UNSPEC, code);
  if (addresses == nullptr) return core::Error{::gai_strerror(code)};
  core::Result<> result;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    result = connect_to(*each->ai_addr, each->ai_addrlen, target, limit);
    if (result || target.is_local) break;
  }
  return result;
}

core::Result<> ClientSocket::connect_to_path(const Target& target, const WaitLimit& limit) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (target.path.size() >= sizeof address.sun_path) {
    return core::Error{"the socket's path is too long"};
  }
  target.path.copy(address.sun_path, target.path.size());
  return connect_to(reinterpret_cast<const sockaddr&>(address), sizeof address, target, limit);
}

core::Result<> ClientSocket::connect_to(const sockaddr& address, size_t size, const Target& target,
                                        const WaitLimit& limit) {
  stream_.reset();
  const int family = address.sa_family;
  descriptor_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor_ < 0) return system_error(errno);
  if (target.uses_tls) {
    stream_ = std::make_unique<TlsStream>(target.tls, TlsStream::Side::kClient, descriptor_);
  } else {
    stream_ = std::make_unique<SocketStream>(descriptor_);
  }
  const int on = 1;
  (void)::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)::setsockopt(descriptor_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  // As in Redis, the connection uses any source address if the configured one cannot be used.
  const std::string& source = target.source_address;
  if (!source.empty() && !bind_to(descriptor_, source, family)) {
    log_warning("A link to the leader cannot begin at bind-source-addr '{}'", source);
  }
  if (target.is_local && !bind_to_own(descriptor_, address, size)) return system_error(errno);
  if (::connect(descriptor_, &address, static_cast<socklen_t>(size)) != 0) {
    if (errno != EINPROGRESS) return system_error(errno);
    if (!wait_for(POLLOUT, limit.now())) return core::Error{kNoAnswer};
    int error_number = 0;
    socklen_t error_size = sizeof error_number;
    (void)::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error_number, &error_size);
    if (error_number != 0) return system_error(error_number);
  }
  return target.uses_tls ? encrypt(limit.now()) : core::Result<>();
}

// Completes the TLS handshake.
core::Result<> ClientSocket::encrypt(Milliseconds timeout) {
  auto& tls = static_cast<TlsStream&>(*stream_);
  const auto end = std::chrono::steady_clock::now() + timeout;
  std::vector<char> room(kHandshakeReadBytes + Stream::kExtraBytesMax);
  Stream::Outcome outcome = tls.send("");
  while (outcome.status == Stream::Status::kLater && tls.phase() == TlsStream::Phase::kHandshake) {
    const auto left = std::chrono::floor<Milliseconds>(end - std::chrono::steady_clock::now());
    const auto events = static_cast<short>(outcome.holds_bytes ? POLLIN | POLLOUT : POLLIN);
    if (left.count() <= 0 || !wait_for(events, left)) {
      return core::Error{fmt::format("TLS handshake: {}", kNoAnswer)};
    }
    if (outcome.holds_bytes) outcome = tls.send("");
    if (outcome.status != Stream::Status::kBroken) {
      outcome = tls.receive({}, room, kHandshakeReadBytes);
    }
  }
  if (tls.phase() == TlsStream::Phase::kEstablished) return {};
  const std::string failure = tls.failure();
  return core::Error{fmt::format("TLS handshake: {}", failure.empty() ? kPeerClosed : failure)};
}

core::Error ClientSocket::failed() const {
  const int error_number = errno;
  const auto* const tls = dynamic_cast<const TlsStream*>(stream_.get());
  const std::string failure = tls == nullptr ? "" : tls->failure();
  return failure.empty() ? system_error(error_number) : core::Error{failure};
}

bool ClientSocket::wait_for(short events, Milliseconds timeout) const {
  const int waker = waker_ == nullptr ? -1 : waker_->descriptor();
  std::array<pollfd, 2> entries{{{descriptor_, events, 0}, {waker, POLLIN, 0}}};
  const auto limit_ms = static_cast<int>(std::clamp<int64_t>(timeout.count(), 0, INT_MAX));
  int count = 0;
  do {
    count = ::poll(entries.data(), entries.size(), limit_ms);
  } while (count < 0 && errno == EINTR);
  return count > 0 && entries[0].revents != 0;
}

bool ClientSocket::wait_for_input(Milliseconds timeout) const {
  return wait_for(POLLIN, timeout);
}

core::Result<> ClientSocket::send(std::string_view bytes) {
  unsent_.append(bytes);
  while (!unsent_.empty() || holds_bytes_) {
    const Stream::Outcome outcome = stream_->send(unsent_);
    if (outcome.status == Stream::Status::kBroken) return failed();
    holds_bytes_ = outcome.holds_bytes;
    unsent_.erase(0, outcome.bytes);
    if (outcome.bytes == 0) break;
  }
  if (unsent_.size() > kUnsentBytesMax) return core::Error{"the peer takes nothing"};
  return {};
}

core::Result<> ClientSocket::send_all(std::string_view bytes, const WaitLimit& limit) {
  while (!bytes.empty() || holds_bytes_) {
    const Stream::Outcome outcome = stream_->send(bytes);
    if (outcome.status == Stream::Status::kBroken) return failed();
    holds_bytes_ = outcome.holds_bytes;
    bytes.remove_prefix(outcome.bytes);
    const bool is_blocked = outcome.bytes == 0 && (!bytes.empty() || holds_bytes_);
    if (is_blocked && !wait_for(POLLOUT, limit.now())) return core::Error{kNoAnswer};
  }
  return {};
}

core::Result<size_t> ClientSocket::receive(std::span<char> out, Milliseconds timeout) {
  if (!wait_for(POLLIN, timeout)) return size_t{0};
  const Stream::Outcome outcome = stream_->receive({}, out, out.size() - Stream::kExtraBytesMax);
  switch (outcome.status) {
    case Stream::Status::kDone:
    case Stream::Status::kLater:
      holds_bytes_ |= outcome.holds_bytes;
      return outcome.bytes;
    case Stream::Status::kEnd:
      return core::Error{kPeerClosed};
    case Stream::Status::kBroken:
      break;
  }
  return failed();
}

}  // namespace server
