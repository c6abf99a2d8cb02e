// SPDX-License-Identifier: MIT
//
// ScriptedEtcd: a member of etcd with scripted answers, on the io_context of the client under test.
//
// Thread safety: only the thread that runs the io_context may use an object.
#pragma once

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/waiting.h"

namespace server::cluster {

inline std::string http_reply(std::string_view body, std::string_view status = "200 OK") {
  return fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body);
}

inline std::string http_stream(std::string_view lines) {
  return fmt::format("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n",
                     lines.size(), lines);
}

inline std::string http_chunk(std::string_view lines) {
  return fmt::format("{:x}\r\n{}\r\n", lines.size(), lines);
}

class ScriptedEtcd {
 public:
  // A function that returns the whole response to a request. The result "" sends nothing, and
  // kHangUp closes the connection.
  using Script = std::function<std::string(const std::string& request)>;
  static constexpr std::string_view kHangUp = "hang up";

  ScriptedEtcd(boost::asio::io_context& io, Script script)
      : acceptor_(io, {boost::asio::ip::address_v4::loopback(), 0}), script_(std::move(script)) {
    accept();
  }

  std::string url() const {
    return fmt::format("http://127.0.0.1:{}", acceptor_.local_endpoint().port());
  }
  const std::vector<std::string>& requests() const { return requests_; }
  size_t connections() const { return sessions_.size(); }
  // Sends the bytes to the newest connection.
  void send(const std::string& bytes) {
    boost::asio::write(sessions_.back()->socket, boost::asio::buffer(bytes));
  }
  void hang_up() { sessions_.back()->socket.close(); }

 private:
  struct Session {
    boost::asio::ip::tcp::socket socket;
    std::string input;
  };

  void accept() {
    acceptor_.async_accept([this](auto error, boost::asio::ip::tcp::socket socket) {
      if (error) return;
      sessions_.push_back(std::make_shared<Session>(Session{std::move(socket), {}}));
      read(sessions_.back());
      accept();
    });
  }

  void read(const std::shared_ptr<Session>& session) {
    boost::asio::async_read_until(
        session->socket, boost::asio::dynamic_buffer(session->input), "\r\n\r\n",
        [this, session](auto error, size_t header) {
          if (error) return;
          constexpr std::string_view kLength = "Content-Length: ";
          const size_t at = session->input.find(kLength) + kLength.size();
          const size_t size = header + std::stoul(session->input.substr(at));
          const size_t missing = size - std::min(size, session->input.size());
          boost::asio::async_read(session->socket, boost::asio::dynamic_buffer(session->input),
                                  boost::asio::transfer_exactly(missing),
                                  [this, session, size](auto failed, size_t) {
                                    if (!failed) answer(session, size);
                                  });
        });
  }

  void answer(const std::shared_ptr<Session>& session, size_t size) {
    requests_.push_back(session->input.substr(0, size));
    session->input.erase(0, size);
    const std::string reply = script_(requests_.back());
    if (reply == kHangUp) return session->socket.close();
    // The write is asynchronous, because the etcd client reads the response on the same thread.
    const auto bytes = std::make_shared<std::string>(reply);
    boost::asio::async_write(session->socket, boost::asio::buffer(*bytes),
                             [this, session, bytes](auto error, size_t) {
                               if (!error) read(session);
                             });
  }

  boost::asio::ip::tcp::acceptor acceptor_;
  Script script_;
  std::vector<std::string> requests_;
  std::vector<std::shared_ptr<Session>> sessions_;
};

// Runs the io_context until done() is true or the deadline has passed. Returns whether done()
// became true.
template <class Condition>
bool run_until(boost::asio::io_context& io, Condition done) {
  const auto deadline = std::chrono::steady_clock::now() + support::deadline();
  while (!done() && std::chrono::steady_clock::now() < deadline) {
    io.restart();
    io.run_one_for(std::chrono::milliseconds(10));
  }
  return done();
}

}  // namespace server::cluster
