// SPDX-License-Identifier: MIT
//
// FakeNode: another node of the cluster, with scripted replies, on a thread of its own. The node
// accepts one connection after the other, and answers each request with the next reply.
//
// Thread-safe.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "server/cluster/topology.h"
#include "tests/support/loopback_listener.h"

namespace server::cluster {

class FakeNode {
 public:
  explicit FakeNode(std::deque<std::string> replies) : replies_(std::move(replies)) {
    node_ = {std::string(40, 'a'), "127.0.0.1", listener_.port(), 0, ""};
    thread_ = std::thread([this] { run(); });
  }
  ~FakeNode() {
    {
      const std::scoped_lock lock(mutex_);
      is_ending_ = true;
      ::shutdown(listener_.descriptor(), SHUT_RDWR);
      // Shuts down the accepted connection, so that serve() stops reading from it.
      if (peer_ >= 0) ::shutdown(peer_, SHUT_RDWR);
    }
    thread_.join();
  }
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;

  const Node& node() const { return node_; }
  int connections() const { return connections_; }
  std::string received() const {
    const std::scoped_lock lock(mutex_);
    return received_;
  }

 private:
  void run() {
    for (int peer = 0; (peer = listener_.accept()) >= 0;) {
      ++connections_;
      if (set_peer(peer)) serve(peer);
      set_peer(-1);
      ::close(peer);
    }
  }
  // Stores the socket of the connection that serve() reads. Returns false if the destructor has
  // begun.
  bool set_peer(int peer) {
    const std::scoped_lock lock(mutex_);
    peer_ = peer;
    return !is_ending_;
  }
  // Answers the requests on a connection. If the next reply is empty, closes the connection. If the
  // next reply is "silence", does not answer the request.
  void serve(int peer) {
    std::array<char, 4096> buffer;
    ssize_t count = 0;
    while ((count = ::read(peer, buffer.data(), buffer.size())) > 0) {
      {
        const std::scoped_lock lock(mutex_);
        received_.append(buffer.data(), static_cast<size_t>(count));
      }
      const std::string reply = replies_.empty() ? "" : replies_.front();
      if (!replies_.empty()) replies_.pop_front();
      if (reply.empty()) return;
      if (reply != "silence") {
        (void)::send(peer, reply.data(), reply.size(), MSG_NOSIGNAL);
      }
    }
  }

  LoopbackListener listener_;
  int peer_ = -1;  // mutex_ guards peer_ and is_ending_
  bool is_ending_ = false;
  Node node_;
  std::atomic<int> connections_{0};
  mutable std::mutex mutex_;
  std::string received_;
  std::deque<std::string> replies_;
  std::thread thread_;
};

}  // namespace server::cluster
