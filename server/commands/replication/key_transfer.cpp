// SPDX-License-Identifier: MIT
#include "server/commands/replication/key_transfer.h"

#include <fmt/format.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/printable.h"
#include "core/result.h"
#include "persistence/journal.h"
#include "server/base/process/waker.h"
#include "server/base/transport/resp_client.h"

namespace server {

struct KeyTransfer::Job {
  TransferTarget target;
  std::vector<DumpedKey> keys;
  Waker abandoned;  // ends the thread's waits when the transfer is abandoned
  std::atomic<bool> has_ended{false};
  Outcome outcome;   // result of the transfer; set before has_ended, constant afterwards
  std::mutex mutex;  // guards the function `wake`
  std::function<void()> wake;

  void end() {
    keys.clear();
    has_ended.store(true, std::memory_order_release);
    const std::scoped_lock lock(mutex);
    if (wake) wake();
  }
};

namespace {

core::Error io_error(std::string_view step, const TransferTarget& target, const core::Error& why) {
  return {fmt::format("IOERR error or timeout {} the target instance {}:{}: {}", step,
                      core::printable(target.host), target.port, why.message)};
}

core::Error target_error(const protocol::Reply& reply) {
  return {"ERR Target instance replied with error: " + reply.text};
}

// Authenticates at the target server and selects the database.
core::Result<> prepare(RespClient& link, const TransferTarget& target) {
  std::string requests;
  if (!target.login.empty()) {
    const std::vector<std::string_view> login(target.login.begin(), target.login.end());
    persistence::append_command(requests, login);
  }
  persistence::append_command(
      requests, std::array<std::string_view, 2>{"SELECT", std::to_string(target.database)});
  if (auto sent = link.send(requests); !sent) return io_error("writing to", target, sent.error());
  for (int i = target.login.empty() ? 1 : 0; i < 2; ++i) {
    const auto reply = link.read_reply();
    if (!reply) return io_error("reading from", target, reply.error());
    if (reply->is_error()) return target_error(*reply);
  }
  return {};
}

// Sends the payload without copying it, because it may be big.
core::Result<> send_key(RespClient& link, const DumpedKey& key) {
  const std::string head = fmt::format(
      "*{}\r\n$7\r\nRESTORE\r\n${}\r\n{}\r\n${}\r\n{}\r\n${}\r\n", key.replaces ? 5 : 4,
      key.name.size(), key.name, std::to_string(key.ttl_ms).size(), key.ttl_ms, key.payload.size());
  const std::string_view tail = key.replaces ? "\r\n$7\r\nREPLACE\r\n" : "\r\n";
  for (const std::string_view part :
       {std::string_view(head), std::string_view(key.payload), tail}) {
    if (auto sent = link.send(part); !sent) return sent;
  }
  return {};
}

core::Result<> store(RespClient& link, const TransferTarget& target,
                     const std::vector<DumpedKey>& keys, std::vector<bool>& stored) {
  for (const DumpedKey& key : keys) {
    if (auto sent = send_key(link, key); !sent) return io_error("writing to", target, sent.error());
  }
  core::Result<> result;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto reply = link.read_reply();
    if (!reply) return io_error("reading from", target, reply.error());
    stored[i] = !reply->is_error();
    if (reply->is_error() && result) result = target_error(*reply);
  }
  return result;
}

core::Result<> transfer(const TransferTarget& target, const std::vector<DumpedKey>& keys,
                        Waker& abandoned, std::vector<bool>& stored) {
  RespClient link(target.timeout, &abandoned);
  auto connected = link.connect({.host = target.host, .port = target.port});
  if (!connected) return io_error("connecting to", target, connected.error());
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
      const auto done = transfer(job->target, job->keys, job->abandoned, job->outcome.stored);
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
  job_->abandoned.wake();
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
