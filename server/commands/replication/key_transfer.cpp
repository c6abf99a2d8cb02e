// SPDX-License-Identifier: MIT
#include "server/commands/replication/key_transfer.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/printable.h"
#include "core/result.h"
#include "persistence/files/open_file.h"
#include "persistence/journal.h"
#include "protocol/reply_parser.h"

namespace server {

struct KeyTransfer::Job {
  TransferTarget target;
  std::vector<DumpedKey> keys;
  std::atomic<bool> is_abandoned{false};
  std::atomic<bool> has_ended{false};
  Outcome outcome;   // result of the transfer; set before has_ended, constant afterwards
  std::mutex mutex;  // this mutex guards wake
  std::function<void()> wake;

  void end() {
    keys.clear();
    has_ended.store(true, std::memory_order_release);
    const std::scoped_lock lock(mutex);
    if (wake) wake();
  }
};

namespace {

using Clock = std::chrono::steady_clock;

// Interval at which the thread checks whether the transfer was abandoned.
constexpr std::chrono::milliseconds kSlice{50};
constexpr size_t kReceivedAtOnce = size_t{16} << 10;

// TargetLink: the connection to the target server. Each function returns false and sets errno if
// its step fails.
class TargetLink {
 public:
  TargetLink(std::chrono::milliseconds timeout, const std::atomic<bool>& is_abandoned)
      : timeout_(timeout), is_abandoned_(is_abandoned) {}

  bool connect(const addrinfo& address) {
    socket_ = persistence::Descriptor(::socket(address.ai_family,
                                               address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                               address.ai_protocol));
    if (!socket_.is_open()) return false;
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(socket_.get(), address.ai_addr, address.ai_addrlen) == 0) return true;
    if (errno != EINPROGRESS || !await(POLLOUT)) return false;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    return error == 0;
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<size_t>(sent));
      } else if ((errno != EAGAIN && errno != EINTR) || !await(POLLOUT)) {
        return false;
      }
    }
    return true;
  }

  // Waits for the next reply of the target server, and moves that reply into `reply`.
  bool receive(protocol::Reply& reply) {
    while (true) {
      const auto status = parser_.parse(input_);
      input_.erase(0, parser_.consumed());
      if (status == protocol::ReplyParser::Status::kReply) {
        reply = std::move(parser_.reply());
        return true;
      }
      if (status == protocol::ReplyParser::Status::kError) {
        errno = EPROTO;
        return false;
      }
      if (!receive_more()) return false;
    }
  }

 private:
  bool receive_more() {
    std::array<char, kReceivedAtOnce> room;
    while (true) {
      const ssize_t size = ::recv(socket_.get(), room.data(), room.size(), 0);
      if (size > 0) {
        input_.append(room.data(), static_cast<size_t>(size));
        return true;
      }
      if (size == 0) {
        errno = ECONNRESET;
        return false;
      }
      if ((errno != EAGAIN && errno != EINTR) || !await(POLLIN)) return false;
    }
  }

  bool await(short events) {
    const auto end = Clock::now() + timeout_;
    while (!is_abandoned_.load(std::memory_order_relaxed)) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
      if (left.count() <= 0) {
        errno = ETIMEDOUT;
        return false;
      }
      pollfd entry{socket_.get(), events, 0};
      const auto slice = std::min(left, kSlice);
      if (::poll(&entry, 1, static_cast<int>(slice.count())) > 0) return true;
    }
    errno = ECANCELED;
    return false;
  }

  const std::chrono::milliseconds timeout_;
  const std::atomic<bool>& is_abandoned_;
  persistence::Descriptor socket_;
  protocol::ReplyParser parser_;
  std::string input_;
};

core::Error io_error(std::string_view step, const TransferTarget& target) {
  return {fmt::format("IOERR error or timeout {} the target instance {}:{}: {}", step,
                      core::printable(target.host), target.port, std::strerror(errno))};
}

core::Error target_error(const protocol::Reply& reply) {
  return {"ERR Target instance replied with error: " + reply.text};
}

core::Result<> connect_to(TargetLink& link, const TransferTarget& target) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed =
      ::getaddrinfo(target.host.c_str(), std::to_string(target.port).c_str(), &hints, &list);
  if (failed != 0) {
    return core::Error{
        fmt::format("IOERR error or timeout connecting to the target instance {}: {}",
                    core::printable(target.host), ::gai_strerror(failed))};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    if (link.connect(*each)) return {};
  }
  return io_error("connecting to", target);
}

// Authenticates at the target server and selects the database.
core::Result<> prepare(TargetLink& link, const TransferTarget& target) {
  std::string requests;
  if (!target.login.empty()) {
    const std::vector<std::string_view> login(target.login.begin(), target.login.end());
    persistence::append_command(requests, login);
  }
  persistence::append_command(
      requests, std::array<std::string_view, 2>{"SELECT", std::to_string(target.database)});
  if (!link.send(requests)) return io_error("writing to", target);
  for (int i = target.login.empty() ? 1 : 0; i < 2; ++i) {
    protocol::Reply reply;
    if (!link.receive(reply)) return io_error("reading from", target);
    if (reply.is_error()) return target_error(reply);
  }
  return {};
}

// Sends the payload without copying it, because it may be big.
bool send_key(TargetLink& link, const DumpedKey& key) {
  const std::string head = fmt::format(
      "*{}\r\n$7\r\nRESTORE\r\n${}\r\n{}\r\n${}\r\n{}\r\n${}\r\n", key.replaces ? 5 : 4,
      key.name.size(), key.name, std::to_string(key.ttl_ms).size(), key.ttl_ms, key.payload.size());
  const std::string_view tail = key.replaces ? "\r\n$7\r\nREPLACE\r\n" : "\r\n";
  return link.send(head) && link.send(key.payload) && link.send(tail);
}

core::Result<> store(TargetLink& link, const TransferTarget& target,
                     const std::vector<DumpedKey>& keys, std::vector<bool>& stored) {
  for (const DumpedKey& key : keys) {
    if (!send_key(link, key)) return io_error("writing to", target);
  }
  core::Result<> result;
  for (size_t i = 0; i < keys.size(); ++i) {
    protocol::Reply reply;
    if (!link.receive(reply)) return io_error("reading from", target);
    stored[i] = !reply.is_error();
    if (reply.is_error() && result) result = target_error(reply);
  }
  return result;
}

core::Result<> transfer(const TransferTarget& target, const std::vector<DumpedKey>& keys,
                        const std::atomic<bool>& is_abandoned, std::vector<bool>& stored) {
  TargetLink link(target.timeout, is_abandoned);
  if (auto done = connect_to(link, target); !done) return done;
  if (auto done = prepare(link, target); !done) return done;
  return store(link, target, keys, stored);
}

}  // namespace

KeyTransfer::KeyTransfer(TransferTarget target, std::vector<DumpedKey> keys,
                         std::function<void()> wake)
    : job_(std::make_shared<Job>()) {
  job_->target = std::move(target);
  job_->keys = std::move(keys);
  job_->wake = std::move(wake);
  job_->outcome.stored.resize(job_->keys.size());
  try {
    std::thread([job = job_] {
      ::pthread_setname_np(::pthread_self(), "migrate");
      const auto done = transfer(job->target, job->keys, job->is_abandoned, job->outcome.stored);
      if (!done) job->outcome.error = done.error().message;
      job->end();
    }).detach();
  } catch (const std::system_error& error) {
    job_->wake = nullptr;
    job_->outcome.error = fmt::format("ERR No thread for the transfer: {}", error.what());
    job_->end();
  }
}

KeyTransfer::~KeyTransfer() {
  job_->is_abandoned.store(true, std::memory_order_relaxed);
  const std::scoped_lock lock(job_->mutex);
  job_->wake = nullptr;
}

bool KeyTransfer::has_ended() const {
  return job_->has_ended.load(std::memory_order_acquire);
}

const KeyTransfer::Outcome& KeyTransfer::outcome() const {
  return job_->outcome;
}

}  // namespace server
