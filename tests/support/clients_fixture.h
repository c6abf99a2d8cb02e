// SPDX-License-Identifier: MIT
//
// ClientsFixture: clients of one server, each on a socket pair, and an I/O thread that the test
// runs itself.
//
//   Remote& reader = connect("HELLO 3");
//   EXPECT_EQ(reader.call("SUBSCRIBE c"), ">[subscribe, c, :1]");
//   run({"PUBLISH", "c", "text"});
//   EXPECT_EQ(reader.news(), (Texts{">[message, c, text]"}));
//
// Messages, invalidations and lines of MONITOR are delivered as in the server. tick() does the work
// of the server's periodic task. The clock moves only when the test calls advance_ms().
// Thread safety: belongs to one thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "protocol/reply.h"
#include "protocol/reply_parser.h"
#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/base/transport/tls_stream.h"
#include "server/net/connection.h"
#include "server/net/message_delivery.h"
#include "server/replication/stream/key_expiry.h"
#include "server/session/acl/users.h"
#include "server/session/clients.h"
#include "server/session/observer.h"
#include "server/session/pubsub/key_events.h"
#include "server/session/pubsub/monitor_feed.h"
#include "server/session/pubsub/tracking.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/fake_reply_log.h"
#include "tests/support/reply_text.h"
#include "tests/support/socket_pair.h"
#include "tests/support/test_threads.h"

namespace server::net {

// Returns the bytes of a command as clients send it.
inline std::string request_of(const std::vector<std::string>& words) {
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return request;
}

// Splits a line at its spaces. Returns the words.
inline std::vector<std::string> words_in(std::string_view line) {
  std::vector<std::string> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

class ClientsFixture : public CommandTest {
 protected:
  using Texts = std::vector<std::string>;

  // One client: its end of a socket pair, and the bytes received there.
  class Remote {
   public:
    // If `context` is set, the server uses TLS on this connection.
    explicit Remote(ClientsFixture& owner, const std::shared_ptr<SSL_CTX>& context = nullptr)
        : owner_(owner) {
      auto session = std::make_unique<Session>(owner.clients_.next_id());
      client_ = session->client;
      client_->socket.descriptor = std::exchange(sockets.near, -1);
      if (context != nullptr) {
        client_->socket.tls = std::make_shared<TlsStream>(context, TlsStream::Side::kServer,
                                                          client_->socket.descriptor);
      }
      session->authenticated = owner.users_.is_open();
      client_->created_us = owner.clock_.monotonic_us();
      client_->last_interaction_us = client_->created_us;
      client_->address = "127.0.0.1:" + std::to_string(50'000 + client_->id);
      client_->local_address = "127.0.0.1:2";
      client_->wake = [&owner, id = client_->id] {
        owner.thread_.loop.post([&owner, id] {
          if (const auto found = owner.thread_.connections.find(id)) found->wake();
        });
      };
      session_ = session.get();
      owner.clients_.add(client_);
      const auto made =
          std::make_shared<Connection>(owner.thread_, owner.services_, std::move(session));
      connection = made.get();
      owner.thread_.connections.add(client_->id, made);
      connection->start();
    }
    Remote(const Remote&) = delete;
    Remote& operator=(const Remote&) = delete;

    uint64_t id() const { return client_->id; }
    std::string id_text() const { return std::to_string(client_->id); }
    Client& client() { return *client_; }
    // REQUIRES: the connection is open.
    Session& session() { return *session_; }
    // True if the server has closed this client's connection.
    bool is_closed() const { return owner_.thread_.connections.find(client_->id) == nullptr; }

    void send(std::string_view bytes) const {
      ASSERT_EQ(::send(sockets.far, bytes.data(), bytes.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes.size()));
    }
    // Sends bytes that may exceed the socket's buffer, and runs the server's event loop meanwhile.
    // Returns false if the server closes the connection or stops reading.
    bool send_all(std::string_view bytes) const {
      int refusals = 0;
      while (!bytes.empty() && refusals < 2 && !is_closed()) {
        const ssize_t size = ::send(sockets.far, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        refusals = size > 0 ? 0 : refusals + 1;
        if (size > 0) bytes.remove_prefix(static_cast<size_t>(size));
        owner_.serve();
      }
      return bytes.empty();
    }
    // Returns the received bytes, followed by "(end)" if the server has closed the connection.
    std::string received() const {
      std::string all;
      std::array<char, 65536> part{};
      while (true) {
        const ssize_t size = ::recv(sockets.far, part.data(), part.size(), 0);
        if (size > 0) {
          all.append(part.data(), static_cast<size_t>(size));
        } else {
          return size == 0 ? all + "(end)" : all;
        }
      }
    }

    // Reads until no more bytes arrive.
    std::string received_all() const {
      std::string all;
      for (size_t before = 1; before != all.size();) {
        owner_.serve();
        before = all.size();
        all += received();
        if (is_closed()) break;
      }
      return all;
    }

    // Returns the reply as text. Several replies are separated by " | ". If the server closes the
    // connection, the text ends with "(end)".
    std::string call(const std::vector<std::string>& words) {
      send(request_of(words));
      return replies();
    }
    std::string call(std::string_view line) { return call(words_in(line)); }
    // Sends all commands in one write. Returns their replies in the same form as call().
    std::string pipeline(const std::vector<std::string>& lines) {
      std::string request;
      for (const std::string& line : lines) request += request_of(words_in(line));
      send(request);
      return replies();
    }
    // Returns the replies received since the last call.
    std::string replies() {
      take();
      return std::exchange(replies_, {});
    }
    // Returns the messages and invalidations received since the last call.
    Texts news() {
      take();
      return std::exchange(news_, {});
    }
    // Shuts down the client's socket. Runs the event loop until it is idle.
    void hang_up() {
      ::shutdown(sockets.far, SHUT_RDWR);
      owner_.serve();
    }

    SocketPair sockets;
    Connection* connection = nullptr;  // null once the connection is closed

   private:
    static bool is_news(const protocol::Reply& reply) {
      using Type = protocol::Reply::Type;
      if (reply.elements.size() < 2) return false;
      const std::string& kind = reply.elements[0].text;
      if (reply.type != Type::kPush && reply.type != Type::kArray) return false;
      return kind.ends_with("message") || kind == "invalidate" || kind == "tracking-redir-broken";
    }
    void take() {
      owner_.serve();
      bytes_ += received();
      std::string_view rest = bytes_;
      while (!rest.empty()) {
        if (rest == "(end)") {
          record("(end)");
          rest = {};
          break;
        }
        const auto status = parser_.parse(rest);
        ASSERT_NE(status, protocol::ReplyParser::Status::kError) << parser_.error();
        rest.remove_prefix(parser_.consumed());
        if (status == protocol::ReplyParser::Status::kNeedMore) break;
        const std::string text = reply_text(parser_.reply());
        if (is_news(parser_.reply())) {
          news_.push_back(text);
        } else {
          record(text);
        }
      }
      bytes_.erase(0, bytes_.size() - rest.size());
    }
    void record(const std::string& text) { replies_ += (replies_.empty() ? "" : " | ") + text; }

    ClientsFixture& owner_;
    std::shared_ptr<Client> client_;
    Session* session_ = nullptr;
    protocol::ReplyParser parser_;
    std::string bytes_;
    std::string replies_;
    Texts news_;
  };

  ClientsFixture() {
    threads_.on_messages = [this](size_t) {
      thread_.loop.post([this] { deliver_messages(thread_, pubsub_, tracking_); });
    };
    threads_.on_monitored = [this](size_t) {
      thread_.loop.post([this] { deliver_monitored(thread_, observer_.monitors()); });
    };
    threads_.on_held_back = [this] {
      thread_.loop.post(
          [this] { thread_.connections.for_each([](Connection& one) { one.wake(); }); });
    };
    keyspace_.set_hooks(
        [this](unsigned database, std::string_view key) {
          key_events_.notify(KeyEvent::kExpired, database, key);
          if (state_.listeners.has(ChangeListeners::kTracking)) {
            tracking_.invalidate({key, keyspace_.ref(key).hash}, {});
          }
        },
        [this] { tracking_.invalidate_all(); });
    config_.follow(OptionId::kNotifyKeyspaceEvents, [this] {
      const auto classes = config_.integer(OptionId::kNotifyKeyspaceEvents);
      key_events_.choose(static_cast<uint32_t>(classes));
    });
    config_.follow(OptionId::kTrackingTableMaxKeys, [this] {
      const auto limit = config_.integer(OptionId::kTrackingTableMaxKeys);
      tracking_.set_limit(static_cast<uint64_t>(limit));
    });
  }
  ~ClientsFixture() override {
    thread_.connections.for_each([](Connection& connection) { connection.close(); });
    end_round();
    remotes_.clear();
    thread_.sockets.close();
    thread_.context.poll();
  }

  // Connects a client, which lives as long as the test, and sends these commands.
  Remote& connect(const std::vector<std::string>& commands = {}) {
    remotes_.push_back(std::make_unique<Remote>(*this));
    Remote& remote = *remotes_.back();
    for (const std::string& command : commands) {
      const std::string reply = remote.call(command);
      EXPECT_FALSE(reply.empty() || reply.starts_with("-")) << command << ": " << reply;
    }
    return remote;
  }

  // Runs the event loop until it is idle.
  void serve() {
    // poll_one() is called first, because on a busy machine the time limit of run_one_for() may
    // pass before it polls.
    while (thread_.context.poll_one() > 0 ||
           thread_.context.run_one_for(std::chrono::milliseconds(2)) > 0) {
      end_round();
    }
  }
  void end_round() {
    thread_.gate.end_round();
    thread_.connections.end_round();
  }
  // Runs the server's periodic task, including the client checks that it makes once a second.
  void tick() {
    const auto limit_bytes = static_cast<uint64_t>(config_.client_memory_limit_bytes());
    if (limit_bytes > 0) clients_.evict_over(limit_bytes);
    expiry_.tick();
    tracking_.trim(10'000);
    const int64_t timeout_us = config_.timeout_s() * core::kSecondUs;
    thread_.connections.for_each(
        [&](Connection& one) { one.on_tick(clock_.monotonic_us(), timeout_us, false); });
    end_round();
    serve();
  }
  static std::vector<protocol::Reply> replies_in(std::string_view bytes) {
    std::vector<protocol::Reply> replies;
    protocol::ReplyParser parser;
    while (!bytes.empty()) {
      const auto status = parser.parse(bytes);
      bytes.remove_prefix(parser.consumed());
      if (status != protocol::ReplyParser::Status::kReply) {
        ADD_FAILURE() << "incomplete reply: " << parser.error() << bytes.substr(0, 100);
        break;
      }
      replies.push_back(std::move(parser.reply()));
    }
    return replies;
  }
  // Returns the value of a field of INFO.
  std::string info(const std::string& section, const std::string& field) {
    const std::string text = run({"INFO", section});
    const size_t start = text.find("\n" + field + ":");
    if (start == std::string::npos) return "none";
    const size_t value = start + field.size() + 2;
    return text.substr(value, text.find('\r', value) - value);
  }

  FakeReplyLog log_;
  IoThread thread_{0, log_};
  OwnExpiries own_expiries_;
  KeyExpiry expiry_{{config_, clock_, keyspace_, state_, pause_, own_expiries_, gauges_,
                     [this](std::function<void()> task) {
                       boost::asio::post(thread_.context, std::move(task));
                     }}};
  std::vector<std::unique_ptr<Remote>> remotes_;
};

}  // namespace server::net
