// SPDX-License-Identifier: MIT
#include "server/net/loop/listening_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/number.h"
#include "server/base/log/log.h"

namespace server::net {
namespace {

namespace ip = asio::ip;

constexpr auto kPause = std::chrono::milliseconds(100);
// Limit on the buffer for a group's entry in the system's group database. The entry lists the
// group's members, maybe thousands.
constexpr size_t kGroupBytesMax = size_t{1} << 20;

// Removes a socket file left by a process that has ended. Errors: why the path cannot be used.
core::Result<> remove_left_socket(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return {};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  // The socket is non-blocking, because connect() would wait if the queue of a running server is
  // full.
  const int caller = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (caller < 0) return core::Error{std::strerror(errno)};
  int failed = 0;
  if (::connect(caller, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    failed = errno;
  }
  ::close(caller);
  if (failed == 0 || failed == EAGAIN) return core::Error{"another server listens on it"};
  if (failed != ECONNREFUSED) return core::Error{std::strerror(failed)};
  ::unlink(path.c_str());
  return {};
}

core::Result<gid_t> find_group(const std::string& name) {
  const auto number = core::parse_int64(name);
  // chown() keeps the group if it gets the largest gid_t.
  if (number && *number >= std::numeric_limits<gid_t>::max()) {
    return core::Error{fmt::format("unixsocketgroup '{}': the number is too large", name)};
  }
  if (number && *number >= 0) return static_cast<gid_t>(*number);
  std::vector<char> buffer(kGroupBytesMax);
  group entry{};
  group* found = nullptr;
  const int failed = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return entry.gr_gid;
  const char* const reason = failed == 0 ? "there is no such group" : std::strerror(failed);
  return core::Error{fmt::format("unixsocketgroup '{}': {}", name, reason)};
}

// Changes the group of the socket at `path`, then sets the permissions.
core::Result<> set_access(const std::string& path, const std::string& group, mode_t mode) {
  if (!group.empty()) {
    const auto id = find_group(group);
    if (!id) return id.error();
    if (::chown(path.c_str(), static_cast<uid_t>(-1), *id) != 0) {
      return core::Error{fmt::format("unixsocketgroup '{}': {}", group, std::strerror(errno))};
    }
  }
  if (::chmod(path.c_str(), mode) != 0) return core::Error{std::strerror(errno)};
  return {};
}

}  // namespace

ListeningSocket::Opened ListeningSocket::open_tcp(asio::io_context& context,
                                                  const std::string& address, uint16_t port,
                                                  int backlog) {
  const bool is_any = address == "*" || address == "::*";
  const auto flags = ip::tcp::resolver::passive | ip::tcp::resolver::numeric_service;
  const std::string service = std::to_string(port);
  ip::basic_resolver<ip::tcp, Executor> resolver(context);
  ErrorCode error;
  const auto found = is_any ? resolver.resolve(address == "*" ? ip::tcp::v4() : ip::tcp::v6(), "",
                                               service, flags, error)
                            : resolver.resolve(address, service, flags, error);
  if (error) {
    return core::Error{
        fmt::format("Could not resolve bind address '{}': {}", address, error.message())};
  }
  const ip::tcp::endpoint where = found.begin()->endpoint();
  auto socket = std::make_shared<ListeningSocket>(context);
  Acceptor& acceptor = socket->acceptor_;
  acceptor.open(where.protocol(), error);
  // If the system rejects SO_REUSEADDR or IPV6_V6ONLY, the server listens without the option.
  ErrorCode ignored;
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), ignored);
  if (!error && where.address().is_v6()) acceptor.set_option(ip::v6_only(true), ignored);
  if (!error) acceptor.bind(where, error);
  auto opened = socket->listen(backlog, error);
  if (opened) return opened;
  return core::Error{fmt::format("Could not create server TCP listening socket {}:{}: {}", address,
                                 port, opened.error().message)};
}

ListeningSocket::Opened ListeningSocket::open_unix(asio::io_context& context,
                                                   const std::string& path,
                                                   const UnixAccess& access, int backlog) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return core::Error{fmt::format("Unix socket path is too long: {}", path)};
  }
  const auto failed = [&path](const core::Error& why) {
    return core::Error{fmt::format("Failed opening Unix socket {}: {}", path, why.message)};
  };
  if (const auto removed = remove_left_socket(path); !removed) return failed(removed.error());
  auto socket = std::make_shared<ListeningSocket>(context);
  ErrorCode error;
  socket->acceptor_.open(asio::local::stream_protocol(), error);
  // bind() creates the socket's file. The umask prevents connections until the file's group is set.
  const mode_t old_mask = ::umask(0777);
  if (!error) socket->acceptor_.bind(asio::local::stream_protocol::endpoint(path), error);
  ::umask(old_mask);
  const mode_t mode = access.permissions == 0 ? 0777 & ~old_mask : access.permissions;
  if (!error) {
    if (const auto set = set_access(path, access.group, mode); !set) {
      ::unlink(path.c_str());
      return failed(set.error());
    }
  }
  auto opened = socket->listen(backlog, error);
  if (opened) return opened;
  return failed(opened.error());
}

ListeningSocket::Opened ListeningSocket::listen(int backlog, ErrorCode error) {
  if (!error) acceptor_.listen(backlog, error);
  if (!error) acceptor_.native_non_blocking(true, error);
  if (error) return core::Error{error.message()};
  // Asio opens sockets without close-on-exec, so child programs would inherit them.
  (void)::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
  return shared_from_this();
}

void ListeningSocket::start(const Handler& handler) {
  const std::scoped_lock lock(mutex_);
  handler_ = handler;
  await();
}

// A socket on `*` and a socket on a single address cannot listen on the same port at the same time.
// So this socket must stop listening before its successor is opened. After shutdown() this socket
// keeps its address and can listen again.
void ListeningSocket::suspend() {
  const std::scoped_lock lock(mutex_);
  is_suspended_ = true;
  ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
}

core::Result<> ListeningSocket::resume(int backlog) {
  const std::scoped_lock lock(mutex_);
  is_suspended_ = false;
  ErrorCode error;
  acceptor_.listen(backlog, error);
  if (error) return core::Error{error.message()};
  await();
  return {};
}

void ListeningSocket::close() {
  const std::scoped_lock lock(mutex_);
  ErrorCode ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

void ListeningSocket::await() {
  if (handler_.accept == nullptr || !acceptor_.is_open()) return;
  if (std::exchange(is_awaited_, true)) return;
  acceptor_.async_wait(Acceptor::wait_read, [self = shared_from_this()](const ErrorCode& error) {
    const std::scoped_lock lock(self->mutex_);
    self->is_awaited_ = false;
    if (error || self->is_suspended_ || !self->acceptor_.is_open()) return;
    if (self->accept_waiting()) return self->await();
    // No peer can be accepted now. The socket stays readable, so retrying at once would spin.
    // Accepting pauses instead.
    self->pause_.expires_after(kPause);
    self->pause_.async_wait([self](const ErrorCode& cancelled) {
      const std::scoped_lock pause_lock(self->mutex_);
      if (!cancelled && !self->is_suspended_) self->await();
    });
  });
}

// Accepts waiting peers. Returns false if accepting must pause.
bool ListeningSocket::accept_waiting() {
  const int64_t most = handler_.accepts_per_round_max();
  for (int64_t i = 0; i < most; ++i) {
    if (!handler_.has_room()) return false;
    const int descriptor =
        ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      handler_.accept(descriptor);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
    log_warning("Accepting client connection: {}", std::strerror(errno));
    return false;
  }
  return true;
}

}  // namespace server::net
