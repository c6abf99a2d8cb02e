// SPDX-License-Identifier: MIT
#include "server/replication/replica/replica_socket.h"

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
#include <chrono>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "server/base/log/log.h"
#include "server/base/transport/stream.h"
#include "server/base/transport/tls.h"
#include "server/base/transport/tls_stream.h"

namespace server {
namespace {

// Limit on the unsent bytes. A replica sends little, so a leader with more unread bytes has stopped
// reading.
constexpr size_t kUnsentBytesMax = size_t{1} << 20;
constexpr size_t kHandshakeReadBytes = size_t{16} << 10;

core::Error system_error(std::string_view what, int error_number) {
  return {fmt::format("{}: {}", what, std::generic_category().message(error_number))};
}

bool bind_to(int descriptor, const std::string& host, int family) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(list, &::freeaddrinfo);
  for (const addrinfo* address = list; address != nullptr; address = address->ai_next) {
    if (::bind(descriptor, address->ai_addr, address->ai_addrlen) == 0) return true;
  }
  return false;
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

ReplicaSocket::~ReplicaSocket() {
  close();
}

void ReplicaSocket::close() {
  if (stream_ == nullptr && descriptor_ >= 0) ::close(descriptor_);
  stream_.reset();
  descriptor_ = -1;
}

core::Result<> ReplicaSocket::connect(const Target& target, int64_t timeout_ms) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(target.port);
  const int code = ::getaddrinfo(target.host.c_str(), port.c_str(), &hints, &list);
  if (code != 0) return core::Error{fmt::format("'{}': {}", target.host, ::gai_strerror(code))};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(list, &::freeaddrinfo);
  core::Result<> result = core::Error{"no address"};
  for (const addrinfo* address = list; address != nullptr; address = address->ai_next) {
    result = connect_to(*address, target.source_address, timeout_ms);
    if (result && target.tls == nullptr) stream_ = std::make_shared<SocketStream>(descriptor_);
    if (result && target.tls != nullptr) result = encrypt(*target.tls, timeout_ms);
    if (result) return result;
    close();
  }
  return result;
}

core::Result<> ReplicaSocket::connect_to(const addrinfo& address, const std::string& source_address,
                                         int64_t timeout_ms) {
  descriptor_ = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor_ < 0) return system_error("socket", errno);
  const int on = 1;
  (void)::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)::setsockopt(descriptor_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  // As in Redis, the link uses any source address if the configured one cannot be used.
  if (!source_address.empty() && !bind_to(descriptor_, source_address, address.ai_family)) {
    log_warning("A link to the leader cannot begin at bind-source-addr '{}'", source_address);
  }
  if (::connect(descriptor_, address.ai_addr, address.ai_addrlen) == 0) return {};
  if (errno != EINPROGRESS) return system_error("connect", errno);
  if (wait_for(POLLOUT, timeout_ms) == Ready::kNot) return core::Error{"connect: no answer"};
  int error_number = 0;
  socklen_t size = sizeof error_number;
  (void)::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error_number, &size);
  if (error_number != 0) return system_error("connect", error_number);
  return {};
}

core::Result<> ReplicaSocket::encrypt(const Tls& settings, int64_t timeout_ms) {
  auto context = settings.client_context();
  if (context == nullptr) return core::Error{"TLS is not configured (tls-replication)"};
  const auto tls =
      std::make_shared<TlsStream>(std::move(context), TlsStream::Side::kClient, descriptor_);
  stream_ = tls;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  std::vector<char> room(kHandshakeReadBytes + Stream::kExtraBytesMax);
  Stream::Outcome outcome = tls->send("");
  while (outcome.status == Stream::Status::kLater && tls->phase() == TlsStream::Phase::kHandshake) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    const auto events = static_cast<short>(outcome.holds_bytes ? POLLIN | POLLOUT : POLLIN);
    if (left.count() <= 0 || wait_for(events, left.count()) == Ready::kNot) {
      return core::Error{"TLS handshake: no answer"};
    }
    if (outcome.holds_bytes) outcome = tls->send("");
    if (outcome.status != Stream::Status::kBroken) {
      outcome = tls->receive({}, room, kHandshakeReadBytes);
    }
  }
  if (tls->phase() == TlsStream::Phase::kEstablished) return {};
  const std::string failure = tls->failure();
  return core::Error{fmt::format("TLS handshake: {} (tls-replication)",
                                 failure.empty() ? "the leader closed the connection" : failure)};
}

core::Error ReplicaSocket::failed(std::string_view what) const {
  const int error_number = errno;
  const auto* const tls = dynamic_cast<const TlsStream*>(stream_.get());
  const std::string failure = tls == nullptr ? "" : tls->failure();
  if (failure.empty()) return system_error(what, error_number);
  return {fmt::format("{}: {}", what, failure)};
}

ReplicaSocket::Ready ReplicaSocket::wait_for(short events, int64_t timeout_ms) {
  std::array<pollfd, 2> entries{{{descriptor_, events, 0}, {waker_.descriptor(), POLLIN, 0}}};
  const int count = ::poll(entries.data(), entries.size(), static_cast<int>(timeout_ms));
  if (count <= 0 || entries[0].revents == 0) return Ready::kNot;
  return Ready::kSocket;
}

core::Result<> ReplicaSocket::send(std::string_view bytes) {
  unsent_.append(bytes);
  while (!unsent_.empty() || holds_bytes_) {
    const Stream::Outcome outcome = stream_->send(unsent_);
    if (outcome.status == Stream::Status::kBroken) return failed("send");
    holds_bytes_ = outcome.holds_bytes;
    unsent_.erase(0, outcome.bytes);
    if (outcome.bytes == 0) break;
  }
  if (unsent_.size() > kUnsentBytesMax) return core::Error{"the leader takes nothing"};
  return {};
}

core::Result<size_t> ReplicaSocket::receive(std::span<char> out, int64_t timeout_ms) {
  if (wait_for(POLLIN, timeout_ms) == Ready::kNot) return size_t{0};
  const Stream::Outcome outcome = stream_->receive({}, out, out.size() - Stream::kExtraBytesMax);
  switch (outcome.status) {
    case Stream::Status::kDone:
      holds_bytes_ |= outcome.holds_bytes;
      return outcome.bytes;
    case Stream::Status::kLater:
      holds_bytes_ |= outcome.holds_bytes;
      return size_t{0};
    case Stream::Status::kEnd:
      return core::Error{"the leader closed the connection"};
    case Stream::Status::kBroken:
      break;
  }
  return failed("receive");
}

}  // namespace server
