// SPDX-License-Identifier: MIT
//
// LeaderFixture: a leader with its thread, and replicas on socket pairs, in one process.
//
//   Remote peer(*this);
//   psync(peer, replication_.offset());
//
// Thread safety: belongs to one thread.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>

#include "server/durability/durability.h"
#include "server/replication/leader/leader.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/waiting.h"

namespace server {

class LeaderFixture : public CommandTest {
 protected:
  // A replica whose end of the socket pair belongs to the test.
  struct Remote {
    explicit Remote(LeaderFixture& test) : client(test) {
      ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data());
      for (const int end : ends) ::fcntl(end, F_SETFL, O_NONBLOCK);
      client.session->client->socket.descriptor = ends[0];
      traits().knows_psync2 = true;
      traits().reads_effects = true;
    }
    ~Remote() {
      client.dispatcher.end_session();
      for (const int end : ends) ::close(end);
    }
    Remote(const Remote&) = delete;
    Remote& operator=(const Remote&) = delete;

    ReplicaTraits& traits() { return client.session->replica_role().traits; }
    // True if bytes have arrived or the leader has closed the connection.
    bool is_readable() const {
      pollfd waited{ends[1], POLLIN, 0};
      return ::poll(&waited, 1, 0) > 0;
    }
    // Waits for up to 1 s. Returns true if bytes arrive or the connection is closed. The second is
    // long enough for the leader's thread to read the clock several times.
    bool hears_more() const {
      pollfd waited{ends[1], POLLIN, 0};
      return ::poll(&waited, 1, 1000) > 0;
    }
    // Reads the remaining bytes. Returns true if the leader closes the connection.
    bool await_end() {
      while (!read(1).empty()) {
      }
      char byte = 0;
      return ::recv(ends[1], &byte, 1, MSG_DONTWAIT) == 0;
    }
    // Reads until at least `size` bytes have arrived, the connection has ended, or no bytes have
    // arrived for a minute. Returns the bytes.
    std::string read(size_t size) {
      std::string all;
      std::array<char, 4096> buffer;
      while (all.size() < size) {
        pollfd waited{ends[1], POLLIN, 0};
        if (::poll(&waited, 1, kPatienceMs) <= 0) break;
        const ssize_t got = ::read(ends[1], buffer.data(), buffer.size());
        if (got <= 0) break;
        all.append(buffer.data(), static_cast<size_t>(got));
      }
      return all;
    }

    std::array<int, 2> ends{};
    TestClient client;
  };
  // Time limit of waits. Only a failing test waits this long.
  static constexpr int kPatienceMs = 60'000;

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

  // Starts a snapshot for `peer`. Returns the bytes that the leader sends before the snapshot. The
  // child process continues to write the snapshot until read_snapshot() reads it.
  static std::string begin_snapshot(Remote& peer) {
    peer.traits().takes_eof_mark = true;
    peer.client.run({"PSYNC", "?", "-1"});
    return begin_snapshot_of(peer);
  }
  static std::string begin_snapshot_of(Remote& peer) {
    std::string begun;
    while (begun.find("$EOF:") == std::string::npos) {
      const std::string more = peer.read(1);
      if (more.empty()) break;
      begun += more;
    }
    return begun;
  }
  static std::string read_snapshot(Remote& peer, std::string received) {
    constexpr size_t kMarkBytes = 40;
    const size_t mark_at = received.find("$EOF:") + 5;
    const size_t begin = mark_at + kMarkBytes + 2;
    if (received.size() < begin) received += peer.read(begin - received.size());
    if (mark_at < 5 || received.size() < begin) {
      ADD_FAILURE() << "no snapshot was started: " << received;
      return "";
    }
    const std::string mark = received.substr(mark_at, kMarkBytes);
    received.erase(0, begin);
    while (!received.ends_with(mark)) {
      const std::string more = peer.read(1);
      if (more.empty()) break;
      received += more;
    }
    if (!received.ends_with(mark)) {
      ADD_FAILURE() << "the end of the snapshot is missing after " << received.size() << " bytes";
      return received;
    }
    received.resize(received.size() - kMarkBytes);
    return received;
  }
  std::string snapshot_of(Remote& peer) { return read_snapshot(peer, begin_snapshot(peer)); }
  // Repeats tick() until the condition is true. tick() processes the end of a child process.
  void await(const std::function<bool()>& condition) {
    ASSERT_TRUE(support::wait_until([&] {
      durability_.tick();
      return condition();
    }));
  }

  const std::string kSet = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
};

}  // namespace server
