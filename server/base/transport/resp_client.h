// SPDX-License-Identifier: MIT
//
// RespClient: sends commands to another server by RESP, and waits for the replies.
//
// Invariants: each wait for the server ends after the timeout `step`, at the deadline of end_at(),
// or at Waker::wake(), whichever comes first. A lookup of a host name is not limited. After an
// error the connection must no longer be used. The sizes of lines and replies are limited, so a
// server cannot fill the memory.
// Thread safety: none, apart from Waker::wake().
// Source: RESP, https://redis.io/docs/latest/develop/reference/protocol-spec/.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "protocol/reply.h"
#include "protocol/reply_parser.h"
#include "server/base/transport/client_socket.h"

namespace server {

// Limits on the size of a line of text, without its end, and of an element of a reply.
inline constexpr size_t kReplyLineBytesMax = size_t{4} << 10;
inline constexpr size_t kReplyBytesMax = size_t{4} << 20;

class RespClient {
 public:
  using Clock = std::chrono::steady_clock;

  // `step` is the timeout of each wait. `waker` ends waits if it is not null. It must outlive the
  // client.
  explicit RespClient(std::chrono::milliseconds step, Waker* waker = nullptr)
      : socket_(waker), limit_(step) {}

  // After this call, no wait lasts beyond `deadline`.
  void end_at(Clock::time_point deadline) { limit_.end = deadline; }

  // The error of each function is the reason as text, without the server's name and without an
  // error code. Each function fails if the connection fails or is closed, or if the server does not
  // answer in time.
  core::Result<> connect(const ClientSocket::Target& target);
  // Authenticates by AUTH. Does nothing if `password` is empty. `user` is empty for the default
  // user. Errors: the connection failed or timed out, or the server has rejected AUTH.
  core::Result<> authenticate(const std::string& user, const std::string& password);
  core::Result<> send(std::string_view bytes);
  core::Result<> send_command(const std::vector<std::string>& words);

  // Returns the next reply. An error that the server returns is a reply, too. Errors: the
  // connection failed or timed out, the bytes are not RESP, or the reply is too large.
  core::Result<protocol::Reply> read_reply();
  // Returns the next line without its end, which is "\n" or "\r\n". Errors: the connection failed
  // or timed out, or the line is too long.
  core::Result<std::string> read_line();
  // Returns the received bytes, at least one.
  core::Result<std::string> read_some();

 private:
  core::Result<> receive_more();

  ClientSocket socket_;
  WaitLimit limit_;
  protocol::ReplyParser parser_;
  std::string input_;  // the received bytes that were not parsed yet
};

}  // namespace server
