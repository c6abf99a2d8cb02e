// SPDX-License-Identifier: MIT
//
// PlayedNode: a simulated server that reports the state that a test sets. It serves one client
// after the other.
//
// Thread safety: all members may be called from any thread.
#pragma once

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "protocol/request_parser.h"
#include "server/cluster_tool/plan.h"
#include "tests/support/loopback_listener.h"

namespace server::cluster {

class PlayedNode {
 public:
  explicit PlayedNode(char digit) : id(40, digit), thread_([this] { serve(); }) {}
  ~PlayedNode() { stop(); }
  PlayedNode(const PlayedNode&) = delete;
  PlayedNode& operator=(const PlayedNode&) = delete;

  Address address() const { return {"127.0.0.1", listener_.port()}; }
  // Stops the server and closes its port.
  void stop() {
    if (!thread_.joinable()) return;
    ::shutdown(listener_.descriptor(), SHUT_RDWR);
    thread_.join();
  }

  // Returns the received commands that request a failover.
  std::vector<std::string> failovers() const {
    const std::scoped_lock lock(mutex_);
    return failovers_;
  }
  void set_on_failover(std::function<void()> on_failover) {
    const std::scoped_lock lock(mutex_);
    on_failover_ = std::move(on_failover);
  }

  // Sets the reply to CLUSTERX TOPOLOGY, and the option cluster-name. Without this call the reply
  // to CLUSTERX TOPOLOGY is an error.
  void keep(std::string file, std::string cluster_name = "") {
    const std::scoped_lock lock(mutex_);
    kept_ = std::move(file);
    cluster_name_ = std::move(cluster_name);
  }
  // Sets the reply to CLUSTER COUNTKEYSINSLOT for the slot. Other slots have no keys.
  void set_slot_keys(unsigned slot, int count) {
    const std::scoped_lock lock(mutex_);
    slot_keys_[slot] = count;
  }

  const std::string id;
  std::atomic<int> keys{0};
  std::atomic<bool> is_enabled{true};  // true: INFO reports cluster_enabled:1

 private:
  static std::string bulk(const std::string& text) {
    return fmt::format("${}\r\n{}\r\n", text.size(), text);
  }
  void serve() {
    for (int client = listener_.accept(); client >= 0; client = listener_.accept()) {
      const int on = 1;
      // Without TCP_NODELAY the small replies to a pipeline would wait for delayed ACKs.
      (void)::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      answer_all(client);
      ::close(client);
    }
  }
  void answer_all(int client) {
    protocol::RequestParser parser;
    std::vector<std::string_view> views;
    std::string input;
    std::array<char, 4096> room;
    for (ssize_t size = 0; (size = ::recv(client, room.data(), room.size(), 0)) > 0;) {
      input.append(room.data(), static_cast<size_t>(size));
      while (parser.parse(input, views) == protocol::RequestParser::Status::kRequest) {
        const std::vector<std::string> words(views.begin(), views.end());
        views.clear();
        input.erase(0, parser.consumed());
        const std::string reply = answer(words);
        ::send(client, reply.data(), reply.size(), MSG_NOSIGNAL);
      }
      input.erase(0, parser.consumed());
    }
  }
  std::string answer(const std::vector<std::string>& words) {
    const std::string command = fmt::format("{}", fmt::join(words, " "));
    if (command == "INFO") {
      return bulk(fmt::format(
          "role:master\r\nmaster_repl_offset:5\r\ncluster_enabled:{}\r\ndb0:keys={},expires=0\r\n",
          is_enabled ? 1 : 0, keys.load()));
    }
    if (command == "CLUSTER MYID") return bulk(id);
    // The reported epoch is very high, so the tool concludes that this server has applied every
    // topology.
    if (command == "CLUSTER INFO") {
      return bulk("cluster_state:ok\r\ncluster_current_epoch:1099511627776\r\n");
    }
    if (command == "DBSIZE") return fmt::format(":{}\r\n", keys.load());
    if (command == "CONFIG GET cluster-name") {
      const std::scoped_lock lock(mutex_);
      return "*2\r\n" + bulk(words[2]) + bulk(cluster_name_);
    }
    if (command.starts_with("CLUSTER COUNTKEYSINSLOT")) {
      const std::scoped_lock lock(mutex_);
      const auto found = slot_keys_.find(static_cast<unsigned>(std::stoul(words[2])));
      return fmt::format(":{}\r\n", found == slot_keys_.end() ? 0 : found->second);
    }
    if (command.starts_with("CONFIG GET")) {
      return "*2\r\n" + bulk(words[2]) + bulk(words[2].ends_with("port") ? "0" : "");
    }
    if (command == "CLUSTERX TOPOLOGY") {
      const std::scoped_lock lock(mutex_);
      if (!kept_.empty()) return bulk(kept_);
    }
    if (command.starts_with("CLUSTER FAILOVER")) {
      const std::scoped_lock lock(mutex_);
      failovers_.push_back(command);
      on_failover_();
      return "+OK\r\n";
    }
    return "-ERR not played: " + command + "\r\n";
  }

  LoopbackListener listener_;
  mutable std::mutex mutex_;  // this mutex guards the members below
  std::vector<std::string> failovers_;
  std::string kept_;
  std::string cluster_name_;
  std::map<unsigned, int> slot_keys_;
  std::function<void()> on_failover_ = [] {};
  std::thread thread_;
};

}  // namespace server::cluster
