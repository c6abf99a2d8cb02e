// SPDX-License-Identifier: MIT
#include "server/process/supervision/health_check.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "core/printable.h"
#include "server/config/config.h"

namespace server {
namespace {

constexpr timeval kLimit{.tv_sec = 2, .tv_usec = 0};
constexpr std::string_view kPing = "*1\r\n$4\r\nPING\r\n";

class Socket {
 public:
  explicit Socket(int family) : descriptor_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &kLimit, sizeof kLimit);
    ::setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &kLimit, sizeof kLimit);
  }
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool connect(const void* address, size_t size) const {
    return ::connect(descriptor_, static_cast<const sockaddr*>(address),
                     static_cast<socklen_t>(size)) == 0;
  }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// The first line of the answer to PING; empty when there is none in time.
std::string ask_plainly(const Socket& socket) {
  if (::send(socket.descriptor(), kPing.data(), kPing.size(), MSG_NOSIGNAL) < 0) return {};
  std::string answer(512, '\0');
  const ssize_t size = ::recv(socket.descriptor(), answer.data(), answer.size(), 0);
  answer.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return answer.substr(0, answer.find('\r'));
}

// The same over TLS. Whose certificate it is does not matter to whoever asks on the same machine.
std::string ask_over_tls(const Socket& socket) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context.get()), SSL_free);
  if (tls == nullptr || SSL_set_fd(tls.get(), socket.descriptor()) != 1) return {};
  if (SSL_connect(tls.get()) != 1) return {};
  if (SSL_write(tls.get(), kPing.data(), static_cast<int>(kPing.size())) <= 0) return {};
  std::string answer(512, '\0');
  const int size = SSL_read(tls.get(), answer.data(), static_cast<int>(answer.size()));
  if (size > 0) {
    answer.resize(static_cast<size_t>(size));
    return answer.substr(0, answer.find('\r'));
  }
  // A server that wants a certificate says so, and so it is there.
  constexpr int kCertificateRequired = SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REQUIRED;
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  return reason == kCertificateRequired ? "-NOAUTH a client certificate is required" : "";
}

Health judge(std::string_view where, const std::string& answer) {
  if (answer.empty()) return {false, fmt::format("{} does not answer", where)};
  const bool is_healthy = answer == "+PONG" || answer.starts_with("-NOAUTH");
  return {is_healthy, fmt::format("{} answers {}", where, core::printable(answer))};
}

Health check_port(int64_t port, bool has_tls) {
  const std::string where = fmt::format("port {}", port);
  const auto number = htons(static_cast<uint16_t>(port));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = number;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 address6{};
  address6.sin6_family = AF_INET6;
  address6.sin6_port = number;
  address6.sin6_addr = in6addr_loopback;
  const auto ask = [has_tls](const Socket& socket) {
    return has_tls ? ask_over_tls(socket) : ask_plainly(socket);
  };
  if (const Socket socket(AF_INET); socket.connect(&address, sizeof address)) {
    return judge(where, ask(socket));
  }
  const int error = errno;
  if (const Socket socket(AF_INET6); socket.connect(&address6, sizeof address6)) {
    return judge(where, ask(socket));
  }
  return {false, fmt::format("{}: {}", where, std::strerror(error))};
}

Health check_path(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return {false, "the socket's path is too long"};
  path.copy(address.sun_path, path.size());
  const Socket socket(AF_UNIX);
  if (!socket.connect(&address, sizeof address)) {
    return {false, fmt::format("{}: {}", path, std::strerror(errno))};
  }
  return judge(path, ask_plainly(socket));
}

}  // namespace

Health check_health(const Config& config) {
  if (config.port() != 0) return check_port(config.port(), false);
  if (const int64_t port = config.integer(OptionId::kTlsPort); port != 0) {
    return check_port(port, true);
  }
  if (const std::string path = config.text(OptionId::kUnixSocket); !path.empty()) {
    return check_path(path);
  }
  return {false, "the configuration names nothing to listen on"};
}

}  // namespace server
