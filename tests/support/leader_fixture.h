// SPDX-License-Identifier: MIT
//
// LeaderFixture: a leader with its thread and replicas over pairs of sockets, without a process.
//
//   Remote peer(*this);
//   psync(peer, replication_.offset());
//
// Thread safety: one thread.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "tests/support/command_test.h"

namespace server {

class LeaderFixture : public CommandTest {
 protected:
  // A client whose socket the test holds the other end of.
  struct Remote {
    explicit Remote(LeaderFixture& test) : client(test) {
      ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data());
      for (const int end : ends) ::fcntl(end, F_SETFL, O_NONBLOCK);
      client.session->socket.descriptor = ends[0];
      client.session->replica.knows_psync2 = true;
      client.session->replica.reads_effects = true;
    }
    ~Remote() {
      client.dispatcher.end_session();
      for (const int end : ends) ::close(end);
    }
    Remote(const Remote&) = delete;
    Remote& operator=(const Remote&) = delete;

    // What has come once it is at least so long, or nothing more has come for a second.
    std::string read(size_t size) {
      std::string all;
      std::array<char, 4096> buffer;
      while (all.size() < size) {
        pollfd waited{ends[1], POLLIN, 0};
        if (::poll(&waited, 1, 1000) <= 0) break;
        const ssize_t got = ::read(ends[1], buffer.data(), buffer.size());
        if (got <= 0) break;
        all.append(buffer.data(), static_cast<size_t>(got));
      }
      return all;
    }

    std::array<int, 2> ends{};
    Client client;
  };

  LeaderFixture() {
    replication_.begin_backlog();
    leader_.start();
  }
  ~LeaderFixture() override { leader_.stop(); }

  Leader& leader() { return leader_; }
  std::string go_on() { return "+CONTINUE " + replication_.ids().id + "\r\n"; }
  std::string psync(Remote& peer, uint64_t offset) {
    return peer.client.run({"PSYNC", replication_.ids().id, std::to_string(offset + 1)});
  }

  const std::string kSet = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
};

}  // namespace server
