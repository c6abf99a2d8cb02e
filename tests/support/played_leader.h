// SPDX-License-Identifier: MIT
//
// PlayedLeader: a leader that the test simulates for a replica, one link at a time.
//
//   leader.await_psync();
//   leader.full_resync(snapshot, 100);
//   leader.say(command({"SET", "a", "1"}));
//   EXPECT_TRUE(leader.await_ack(100 + size));
//
// Thread safety: belongs to one thread.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/request_parser.h"
#include "tests/support/loopback_listener.h"

namespace server {

class PlayedLeader {
 public:
  using Words = std::vector<std::string>;

  PlayedLeader() = default;
  ~PlayedLeader() { drop(); }
  PlayedLeader(const PlayedLeader&) = delete;
  PlayedLeader& operator=(const PlayedLeader&) = delete;

  uint16_t port() const { return listener_.port(); }
  void say(std::string_view text) const { EXPECT_TRUE(try_to_say(text)); }
  // Sends the text. Returns false if the replica has closed the link.
  bool try_to_say(std::string_view text) const {
    return ::send(link_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  // True if a replica has connected and waits to be accepted.
  bool is_called() const { return is_readable(listener_.descriptor(), 0); }
  // Accepts the next link, answers the handshake up to PSYNC, and returns the PSYNC command.
  std::string await_psync() {
    drop();
    if (!is_readable(listener_.descriptor())) {
      ADD_FAILURE() << "no replica has connected";
      return "";
    }
    link_ = listener_.accept();
    const int is_at_once = 1;
    ::setsockopt(link_, IPPROTO_TCP, TCP_NODELAY, &is_at_once, sizeof is_at_once);
    input_.clear();
    parser_.reset();
    said.clear();
    return await_question();
  }
  // Answers the handshake up to PSYNC on the present link, and returns the PSYNC command.
  std::string await_question() {
    for (;;) {
      const Words words = read_command();
      if (words.empty()) return "";
      said.push_back(fmt::format("{}", fmt::join(words, " ")));
      if (words[0] == "PSYNC" || words[0] == "SYNC") return said.back();
      const auto answer = answers.find(words[0]);
      (void)try_to_say(answer != answers.end() ? answer->second
                       : words[0] == "PING"    ? "+PONG\r\n"
                                               : "+OK\r\n");
    }
  }
  // Answers PSYNC with a snapshot. If `mark` is empty, announces the size of the snapshot.
  // Otherwise announces the end mark `mark`, and sends it after the snapshot.
  void full_resync(std::string_view snapshot, uint64_t offset = 0, std::string_view mark = "") {
    say(fmt::format("+FULLRESYNC {} {}\r\n", kId, offset));
    send_snapshot(snapshot, mark);
  }
  void send_snapshot(std::string_view snapshot, std::string_view mark = "") const {
    say(mark.empty() ? fmt::format("${}\r\n", snapshot.size()) : fmt::format("$EOF:{}\r\n", mark));
    say(snapshot);
    say(mark);
  }
  // Waits for the ACK of this offset. Returns false if the link ends first, or if no bytes arrive
  // before the timeout.
  bool await_ack(uint64_t offset) {
    const std::string wanted = fmt::format("{}", offset);
    for (Words words = read_command(); !words.empty(); words = read_command()) {
      if (words.size() < 3 || words[0] != "REPLCONF" || words[1] != "ACK") continue;
      acks.push_back(words[2]);
      last_ack = fmt::format("{}", fmt::join(words, " "));
      synced = words.size() > 4 ? words[4] : "";
      if (words[2] == wanted) return true;
    }
    return false;
  }
  // Waits for the end of the link. Returns true if the replica closes it.
  bool await_end() {
    while (!read_command().empty()) {
    }
    return is_ended_;
  }
  // Ends the stream. Returns when the replica has read everything and closed the link.
  void hang_up() {
    ::shutdown(link_, SHUT_WR);
    EXPECT_TRUE(await_end());
    drop();
  }

  static inline const std::string kId = std::string(40, 'a');
  static inline const std::string kMark = "0123456789abcdef0123456789abcdefMARK*3$8";
  // Replies to handshake commands, by command. Such a reply is sent instead of the usual one.
  std::map<std::string, std::string> answers;
  std::vector<std::string> said;  // commands of the handshake on the last link
  std::vector<std::string> acks;  // offsets acknowledged on all links
  std::string last_ack;           // the last acknowledgement, with all its words
  std::string synced;             // the last offset that the replica reported as synced

 private:
  static constexpr int kPatienceMs = 60'000;

  void drop() {
    if (link_ >= 0) ::close(link_);
    link_ = -1;
    is_ended_ = false;
  }
  static bool is_readable(int descriptor, int patience_ms = kPatienceMs) {
    pollfd waited{descriptor, POLLIN, 0};
    return ::poll(&waited, 1, patience_ms) > 0;
  }
  // Reads a command of the replica. Returns an empty list at the end of the link or after a
  // timeout.
  Words read_command() {
    for (;;) {
      std::vector<std::string_view> views;
      const auto status = parser_.parse(input_, views);
      const Words words(views.begin(), views.end());
      input_.erase(0, parser_.consumed());
      if (!words.empty()) return words;
      EXPECT_NE(status, protocol::RequestParser::Status::kError) << parser_.error();
      if (link_ < 0 || !is_readable(link_)) return {};
      std::array<char, 4096> buffer;
      const ssize_t got = ::read(link_, buffer.data(), buffer.size());
      is_ended_ = got <= 0;
      if (is_ended_) return {};
      input_.append(buffer.data(), static_cast<size_t>(got));
    }
  }

  LoopbackListener listener_;
  protocol::RequestParser parser_;
  std::string input_;
  int link_ = -1;
  bool is_ended_ = false;
};

}  // namespace server
