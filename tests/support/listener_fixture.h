// SPDX-License-Identifier: MIT
//
// ListenerFixture: a listener on free ports of 127.0.0.1 with its I/O thread. Caller: a client that
// waits ten seconds for an answer.
//
// Thread safety: one thread, beside the listener's. While that serves, commands go by way of it.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <thread>

#include "server/config/option_table.h"
#include "server/net/io_threads.h"
#include "server/net/listener.h"
#include "server/transport/tls.h"
#include "tests/support/command_test.h"
#include "tests/support/fake_reply_log.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/set_option.h"

namespace server::net {

class Caller {
 public:
  explicit Caller(int family = AF_INET)
      : descriptor_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
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
  // What comes before anything was asked; empty at the end.
  std::string hear() const {
    std::array<char, 1024> room{};
    const ssize_t size = ::recv(descriptor_, room.data(), room.size(), 0);
    return size <= 0 ? "" : std::string(room.data(), static_cast<size_t>(size));
  }
  std::string ask(const std::string& line) const {
    send(line + "\r\n");
    return hear();
  }
  void send(const std::string& bytes) const {
    (void)::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

class ListenerFixture : public CommandTest {
 protected:
  ListenerFixture() {
    std::string pattern = ::testing::TempDir() + "bloomery_listen_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    set_option(config_, OptionId::kBind, "127.0.0.1");
    set_option(config_, OptionId::kPort, std::to_string(port_));
  }
  ~ListenerFixture() override {
    if (runner_.joinable()) {
      io_.at(0).loop.post([this] { listener_.close(); });
      io_.stop();
      runner_.join();
    }
    std::filesystem::remove_all(directory_);
  }

  // A port that was free a moment ago.
  static uint16_t free_port() { return LoopbackListener().port(); }
  void serve() {
    const auto opened = listener_.open();
    ASSERT_TRUE(opened) << opened.error().message;
    runner_ = std::thread([this] { io_.run(); });
    listener_.start();
  }
  bool rebind_to(OptionId option, const std::string& value) {
    const auto& row = option_table()[static_cast<size_t>(option)];
    return config_.set(std::array{NamedValue{std::string(row.name), value}}).has_value();
  }
  static bool answers(const std::string& address, uint16_t port) {
    const Caller caller;
    return caller.call(address, port) && caller.ask("PING") == "+PONG\r\n";
  }
  std::string directory_;
  uint16_t port_ = free_port();
  FakeReplyLog log_;
  IoThreads io_{1, log_};
  Tls tls_{config_};
  Listener listener_{io_, services_, tls_};
  std::thread runner_;
};

}  // namespace server::net
