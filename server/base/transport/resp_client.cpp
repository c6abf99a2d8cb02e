// SPDX-License-Identifier: MIT
#include "server/base/transport/resp_client.h"

#include <algorithm>
#include <utility>

#include "persistence/journal.h"

namespace server {
namespace {

constexpr size_t kReplyReadBytes = size_t{64} << 10;

}  // namespace

core::Result<> RespClient::connect(const ClientSocket::Target& target) {
  return socket_.connect(target, limit_);
}

core::Result<> RespClient::authenticate(const std::string& user, const std::string& password) {
  if (password.empty()) return {};
  std::vector<std::string> words{"AUTH"};
  if (!user.empty()) words.push_back(user);
  words.push_back(password);
  if (auto sent = send_command(words); !sent) return sent;
  const auto reply = read_reply();
  if (!reply) return reply.error();
  if (reply->is_error()) return core::Error{reply->text};
  return {};
}

core::Result<> RespClient::send(std::string_view bytes) {
  return socket_.send_all(bytes, limit_);
}

core::Result<> RespClient::send_command(const std::vector<std::string>& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  std::string command;
  persistence::append_command(command, views);
  return send(command);
}

core::Result<> RespClient::receive_more() {
  const size_t size = input_.size();
  size_t count = 0;
  while (count == 0) {
    if (!socket_.wait_for_input(limit_.now())) return core::Error{"no answer in time"};
    input_.resize(size + kReplyReadBytes + Stream::kExtraBytesMax);
    const auto got = socket_.receive(std::span(input_).subspan(size), {});
    if (!got) return got.error();
    count = *got;
  }
  input_.resize(size + count);
  return {};
}

core::Result<protocol::Reply> RespClient::read_reply() {
  while (true) {
    const auto status = parser_.parse(input_);
    input_.erase(0, parser_.consumed());
    if (status == protocol::ReplyParser::Status::kReply) return std::move(parser_.reply());
    if (status == protocol::ReplyParser::Status::kError) {
      return core::Error{std::string(parser_.error())};
    }
    if (input_.size() > kReplyBytesMax) return core::Error{"the reply is too large"};
    if (auto more = receive_more(); !more) return more.error();
  }
}

core::Result<std::string> RespClient::read_line() {
  while (true) {
    const size_t end = std::min(input_.find('\n'), input_.size());
    if (end > kReplyLineBytesMax) return core::Error{"a line of the reply is too long"};
    if (end < input_.size()) {
      std::string line = input_.substr(0, end);
      input_.erase(0, end + 1);
      if (line.ends_with('\r')) line.pop_back();
      return {boost::system::in_place_value, std::move(line)};
    }
    if (auto more = receive_more(); !more) return more.error();
  }
}

core::Result<std::string> RespClient::read_some() {
  if (input_.empty()) {
    if (auto more = receive_more(); !more) return more.error();
  }
  return {boost::system::in_place_value, std::exchange(input_, {})};
}

}  // namespace server
