// SPDX-License-Identifier: MIT
//
// Caller: a client on a blocking socket that waits for a reply until support::deadline(), which is
// at least a minute.
//
// Thread safety: belongs to one thread.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include "tests/support/wait_limit.h"

class Caller {
 public:
  explicit Caller(int family = AF_INET)
      : descriptor_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    support::limit_waits(descriptor_);
  }
  ~Caller() { ::close(descriptor_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  bool call(const std::string& address, uint16_t port) const {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    ::inet_pton(AF_INET, address.c_str(), &where.sin_addr);
    return ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
  }
  bool call_path(const std::string& path) const {
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    path.copy(where.sun_path, sizeof where.sun_path - 1);
    return ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
  }
  // Receives the next bytes without sending a request first. Returns "" at the end of the stream,
  // and kSilence after a timeout.
  std::string hear() const {
    std::array<char, 1024> room{};
    const ssize_t size = ::recv(descriptor_, room.data(), room.size(), 0);
    if (size > 0) return std::string(room.data(), static_cast<size_t>(size));
    return size < 0 && errno == EAGAIN ? kSilence : "";
  }
  // Receives until the stream ends. Returns false if a timeout comes first.
  bool await_end() const {
    std::string last = hear();
    while (!last.empty() && last != kSilence) last = hear();
    return last.empty();
  }
  std::string ask(const std::string& line) const {
    send(line + "\r\n");
    return hear();
  }
  void send(const std::string& bytes) const {
    (void)::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  int descriptor() const { return descriptor_; }

  static inline const std::string kSilence = "(silence)";

 private:
  int descriptor_;
};
