// SPDX-License-Identifier: MIT
#include "server/cluster_node/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>

#include "persistence/journal.h"
#include "server/base/config/config.h"
#include "server/base/config/host.h"
#include "server/base/log/log.h"
#include "server/base/process/start_thread.h"
#include "server/base/process/waker.h"
#include "server/base/transport/resp_client.h"
#include "server/base/transport/tls.h"

namespace server::cluster {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kCallsMax = 16;

std::string command_of(const std::vector<std::string>& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  std::string command;
  persistence::append_command(command, views);
  return command;
}

// Returns whether the peer denies this node access. The password, the user or its rights are wrong,
// or the peer is in protected mode.
bool is_access_error(std::string_view line) {
  constexpr std::string_view kStarts[] = {"-NOAUTH", "-NOPERM", "-WRONGPASS", "-DENIED",
                                          "-ERR AUTH"};
  return std::ranges::any_of(kStarts, [&](auto start) { return line.starts_with(start); });
}

}  // namespace

class Peers::Link {
 public:
  Link(const Peers& peers, Address address)
      : peers_(peers),
        address_(std::move(address)),
        thread_(start_thread("peer", [this] { run(); })) {}
  ~Link() {
    end();
    thread_.join();
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Makes the thread end soon, without waiting for it. Calls that were not sent get no answer.
  void end() {
    std::deque<Call> unsent;
    {
      const std::scoped_lock lock(mutex_);
      is_ending_ = true;
      unsent.swap(calls_);
    }
    waker_.wake();
    has_calls_.notify_all();
    for (Call& call : unsent) answer(std::move(call.handler), std::nullopt);
  }
  // Returns whether the thread has ended, so that the destructor does not wait.
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }

  void call(std::vector<std::string> words, Handler handler, std::chrono::milliseconds delay) {
    Call dropped;
    {
      const std::scoped_lock lock(mutex_);
      if (calls_.size() == kCallsMax) {
        dropped = std::move(calls_.front());
        calls_.pop_front();
      }
      const auto limit = std::chrono::milliseconds(peers_.limit_ms_) + delay;
      calls_.push_back({command_of(words), std::move(handler), limit, SteadyClock::now() + limit});
    }
    has_calls_.notify_all();
    if (dropped.handler) answer(std::move(dropped.handler), std::nullopt);
  }

 private:
  struct Call {
    std::string command;
    Handler handler;
    std::chrono::milliseconds limit;
    SteadyClock::time_point end;  // a call that has waited until then is not sent
  };

  void answer(Handler handler, std::optional<std::string> line) {
    boost::asio::post(peers_.io_,
                      [handler = std::move(handler), line = std::move(line)] { handler(line); });
  }

  void run() {
    serve();
    link_.reset();
    has_ended_.store(true, std::memory_order_release);
  }

  void serve() {
    for (;;) {
      std::unique_lock lock(mutex_);
      has_calls_.wait(lock, [this] { return is_ending_ || !calls_.empty(); });
      if (is_ending_) return;
      Call call = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      // A call whose time limit has passed is not sent. It may have waited for an earlier call that
      // was not answered.
      auto line = call.end > SteadyClock::now() ? ask(call) : std::nullopt;
      // A link on which the peer refuses commands is not kept, because the password may be
      // corrected.
      if (!line || is_access_error(*line)) link_.reset();
      if (line) report(*line);
      answer(std::move(call.handler), std::move(line));
    }
  }

  std::optional<std::string> ask(const Call& call) {
    const auto end = SteadyClock::now() + call.limit;
    // The peer may have closed a link that was kept after an earlier call. So a failure on such a
    // link is followed by an attempt on a new one.
    if (link_) {
      link_->end_at(end);
      if (auto line = exchange(call.command); line && !is_access_error(*line)) return line;
    }
    if (is_ending_ || !connect(end)) return std::nullopt;
    return exchange(call.command);
  }

  bool connect(SteadyClock::time_point end) {
    // The deadline of the call is the only limit.
    link_.emplace(std::chrono::milliseconds::max(), &waker_);
    link_->end_at(end);
    ClientSocket::Target target{.host = address_.first, .port = address_.second};
    const Config& config = peers_.config_;
    target.uses_tls = config.flag(OptionId::kTlsReplication) && peers_.tls_ != nullptr;
    if (target.uses_tls) target.tls = peers_.tls_->client_context();
    if (!link_->connect(target)) return false;
    const auto authenticated =
        link_->authenticate(config.text(OptionId::kMasterUser), config.text(OptionId::kMasterAuth));
    if (!authenticated) report(fmt::format("-{}", authenticated.error().message));
    return authenticated.has_value();
  }

  // Logs that the peer refuses access: once for each text, until the peer has answered a command.
  void report(const std::string& line) {
    if (!is_access_error(line)) {
      if (line.starts_with('+')) reported_.clear();
      return;
    }
    if (std::exchange(reported_, line) == line) return;
    log_warning(
        "Cluster: {} refuses this node's commands ({}): correct masteruser and masterauth of this "
        "node, and give the user +clusterx",
        host_and_port(address_.first, address_.second), line.substr(1));
  }

  std::optional<std::string> exchange(const std::string& command) {
    if (!link_->send(command)) return std::nullopt;
    auto line = link_->read_line();
    return line ? std::optional(*std::move(line)) : std::nullopt;
  }

  const Peers& peers_;
  const Address address_;
  std::mutex mutex_;  // this mutex guards calls_
  std::condition_variable has_calls_;
  std::deque<Call> calls_;
  std::atomic<bool> is_ending_{false};
  std::atomic<bool> has_ended_{false};
  Waker waker_;
  // Only this link's thread uses link_ and reported_.
  std::optional<RespClient> link_;
  std::string reported_;  // the last logged refusal
  std::thread thread_;    // the last member, so that the thread starts after all others exist
};

Peers::Peers(boost::asio::io_context& io, const Config& config, const Tls* tls, int64_t limit_ms)
    : io_(io), config_(config), tls_(tls), limit_ms_(limit_ms) {}

Peers::~Peers() = default;

Peers::Address Peers::address_of(const Node& node) const {
  const bool is_encrypted = config_.flag(OptionId::kTlsReplication);
  return {node.ip, is_encrypted ? node.tls_port : node.port};
}

void Peers::call(const Node& node, std::vector<std::string> words, Handler handler,
                 int64_t delay_ms) {
  const Address address = address_of(node);
  auto& link = links_[address];
  if (link == nullptr) link = std::make_unique<Link>(*this, address);
  link->call(std::move(words), std::move(handler), std::chrono::milliseconds(delay_ms));
}

void Peers::keep_only(const Topology& topology) {
  std::set<Address> named;
  for (const Node& node : topology.nodes) named.insert(address_of(node));
  for (auto link = links_.begin(); link != links_.end();) {
    if (named.contains(link->first)) {
      ++link;
      continue;
    }
    link->second->end();
    ending_.push_back(std::move(link->second));
    link = links_.erase(link);
  }
  std::erase_if(ending_, [](const auto& link) { return link->has_ended(); });
}

}  // namespace server::cluster
