// SPDX-License-Identifier: MIT
//
// ConnectionFixture: one client on a socket pair, with a log that comes as far as the test says.
//
//   EXPECT_EQ(answer("PING\r\n"), "+PONG\r\n");
//
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/reply.h"
#include "protocol/reply_parser.h"
#include "server/net/connection.h"
#include "tests/support/command_test.h"
#include "tests/support/fake_reply_log.h"
#include "tests/support/socket_pair.h"

namespace server::net {

// A command as clients send it.
inline std::string request_of(const std::vector<std::string>& words) {
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return request;
}

class ConnectionFixture : public CommandTest {
 protected:
  ConnectionFixture() {
    auto session = std::make_shared<Session>(clients_.next_id());
    session->socket.descriptor = std::exchange(sockets_.near, -1);
    session->authenticated = true;
    session->created_ms = clock_.wall_ms();
    session->last_interaction_ms = clock_.wall_ms();
    session_ = session.get();
    clients_.add(session);
    auto connection = std::make_shared<Connection>(thread_, services_, std::move(session));
    connection_ = connection.get();
    thread_.connections.add(session_->id, connection);
    connection_->start();
  }
  ~ConnectionFixture() override {
    thread_.connections.for_each([](Connection& connection) { connection.close(); });
    end_round();
    thread_.sockets.close();
    thread_.context.poll();
  }

  // What the loop does, until nothing happens for a moment.
  void serve() {
    while (thread_.context.run_one_for(std::chrono::milliseconds(2)) > 0) end_round();
  }
  void end_round() {
    thread_.gate.end_round();
    thread_.connections.end_round();
  }
  void send(std::string_view bytes) const {
    ASSERT_EQ(::send(sockets_.far, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // What the client has got; "(end)" behind it when the server has closed.
  std::string received() {
    std::string all;
    std::array<char, 65536> part{};
    while (true) {
      const ssize_t size = ::recv(sockets_.far, part.data(), part.size(), 0);
      if (size > 0) {
        all.append(part.data(), static_cast<size_t>(size));
      } else {
        return size == 0 ? all + "(end)" : all;
      }
    }
  }
  std::string answer(std::string_view request) {
    send(request);
    serve();
    return received();
  }
  // The same for as many bytes as one likes, as long as the server takes them.
  std::string answer_in_parts(std::string_view request, size_t part_size) {
    std::string all;
    for (size_t start = 0; start < request.size() && !is_closed(); start += part_size) {
      all += answer(request.substr(start, part_size));
    }
    return all;
  }
  static std::vector<protocol::Reply> replies_in(std::string_view bytes) {
    std::vector<protocol::Reply> replies;
    protocol::ReplyParser parser;
    while (!bytes.empty()) {
      const auto status = parser.parse(bytes);
      bytes.remove_prefix(parser.consumed());
      if (status != protocol::ReplyParser::Status::kReply) {
        ADD_FAILURE() << "no whole reply: " << parser.error() << bytes.substr(0, 100);
        break;
      }
      replies.push_back(std::move(parser.reply()));
    }
    return replies;
  }
  bool is_closed() const { return thread_.connections.count() == 0; }
  // Replies wait for the log from now on.
  void append_to_log(uint64_t offset) { log_.end = offset; }

  FakeReplyLog log_;
  IoThread thread_{0, log_};
  SocketPair sockets_;
  Session* session_ = nullptr;
  Connection* connection_ = nullptr;
};

}  // namespace server::net
