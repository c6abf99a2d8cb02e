// SPDX-License-Identifier: MIT
//
// ListenerFixture: runs a listener on free ports of 127.0.0.1, with one I/O thread.
//
// Thread safety: only the test's thread may call the members; the listener's I/O thread runs at the
// same time. While the listener serves, tests must send commands through its sockets.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "server/base/config/config.h"
#include "server/base/config/option_table.h"
#include "server/base/transport/tls.h"
#include "server/net/io_threads.h"
#include "server/net/listener.h"
#include "tests/support/caller.h"
#include "tests/support/command_test.h"
#include "tests/support/fake_reply_log.h"
#include "tests/support/reserved_port.h"
#include "tests/support/set_option.h"
#include "tests/support/waiting.h"

namespace server::net {

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
  static bool await(const std::function<bool()>& condition) {
    return support::wait_until(condition);
  }
  std::string directory_;
  const ReservedPort reserved_;
  const uint16_t port_ = reserved_.port();
  FakeReplyLog log_;
  IoThreads io_{1, log_};
  Tls tls_{config_};
  Listener listener_{io_, services_, tls_};
  std::thread runner_;
};

}  // namespace server::net
