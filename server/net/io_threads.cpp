// SPDX-License-Identifier: MIT
#include "server/net/io_threads.h"

#include <pthread.h>

#include <algorithm>
#include <cassert>
#include <chrono>

#include "server/net/connection.h"
#include "server/net/message_delivery.h"

namespace server::net {

namespace {

// How long a thread without work waits for clients before it sleeps in Asio. Timers and posts of
// Asio's are late by as much at most, in a thread that was busy until then.
constexpr int kLingerMs = 10;
// How often a thread that clients keep busy looks at Asio's timers.
constexpr std::chrono::milliseconds kAsioInterval{1};
// Owed replies that are sent before the round ends, lest they leave the cache.
constexpr size_t kOwedBytesMax = size_t{32} * 1024;
// Memory for replies that outlives a round.
constexpr size_t kReplyBytesKept = 2 << 20;

thread_local const IoThread* current_loop = nullptr;

}  // namespace

// While its loop runs on this thread.
class CurrentLoop {
 public:
  explicit CurrentLoop(const IoThread& loop) : before_(std::exchange(current_loop, &loop)) {}
  ~CurrentLoop() { current_loop = before_; }
  CurrentLoop(const CurrentLoop&) = delete;
  CurrentLoop& operator=(const CurrentLoop&) = delete;

 private:
  const IoThread* const before_;
};

bool IoThread::is_current() const {
  return current_loop == this;
}

void IoThread::run() {
  const CurrentLoop current(*this);
  while (!context.stopped()) {
    run_posts();
    if (context.stopped()) break;
    if (sharing != nullptr) sharing->measure(*this);
    if (serve()) continue;
    if (sharing != nullptr) sharing->restart_measure(*this);
    readiness.arm();
    context.run_one();
    finish_round();
  }
  if (sharing != nullptr) sharing->resign(*this, LoopSharing::Role::kReturned);
}

void IoThread::run_posts() {
  has_posts = false;
  context.poll();
  if (has_messages) {
    has_messages = deliver_messages(*this, *pubsub);
    // What is left waits for one round of the sockets, but not for a client to come.
    if (has_messages) has_posts = true;
  }
  finish_round();
}

bool IoThread::serve() {
  using Role = LoopSharing::Role;
  switch (sharing == nullptr ? Role::kAlone : sharing->join(*this)) {
    case Role::kAlone:
      return serve_alone();
    case Role::kDriver:
      return drive();
    case Role::kReturned:
      return true;
    case Role::kIdle:
      break;
  }
  return has_posts;
}

bool IoThread::serve_alone() {
  const auto until = std::chrono::steady_clock::now() + kAsioInterval;
  do {
    is_in_readiness = true;
    readiness.wait(has_posts ? 0 : kLingerMs);
    is_in_readiness = false;
    const size_t served = readiness.deliver();
    finish_round();
    if (served == 0) return has_posts;
  } while (!has_posts && std::chrono::steady_clock::now() < until);
  return true;
}

bool IoThread::drive() {
  sharing->adopt_offers(*this);
  for (IoThread* const loop : share.lent) {
    if (!loop->share.lease.take()) continue;
    const CurrentLoop current(*loop);
    loop->run_posts();
    const bool has_ended = loop->context.stopped();
    loop->share.lease.put_back();
    if (has_ended) {
      sharing->resign(*this, LoopSharing::Role::kReturned);
      return true;
    }
  }
  const auto until = std::chrono::steady_clock::now() + kAsioInterval;
  do {
    const size_t served = drive_round();
    if (has_posts_anywhere()) return true;
    if (served == 0) {
      sharing->resign(*this, LoopSharing::Role::kIdle);
      return has_posts;
    }
  } while (std::chrono::steady_clock::now() < until);
  return true;
}

size_t IoThread::drive_round() {
  const auto set_in_readiness = [this](bool value) {
    is_in_readiness = value;
    for (IoThread* const loop : share.lent) {
      if (loop->share.lease.state() == Lease::State::kLent) loop->is_in_readiness = value;
    }
  };
  set_in_readiness(true);
  readiness.wait(has_posts_anywhere() ? 0 : kLingerMs);
  set_in_readiness(false);
  ++share.rounds;
  const size_t served = readiness.deliver();
  // One commit of the log serves all: what the lent loops executed is in the journal by now.
  finish_round();
  for (IoThread* const loop : share.lent) {
    if (loop->share.lease.state() != Lease::State::kDriven) continue;
    const CurrentLoop current(*loop);
    loop->finish_round();
    loop->share.lease.put_back();
  }
  return served;
}

bool IoThread::has_posts_anywhere() const {
  return has_posts || std::any_of(share.lent.begin(), share.lent.end(),
                                  [](const IoThread* loop) { return loop->has_posts.load(); });
}

void IoThread::LentWatcher::on_ready(uint32_t /*events*/) {
  // It may have gone back to its own thread.
  if (!loop.share.lease.take()) return;
  const CurrentLoop current(loop);
  loop.readiness.wait(0);
  loop.readiness.deliver();
}

void IoThread::owe(Connection& connection, uint64_t log_offset) {
  owed.push_back({&connection, replies.size(), log_offset});
  if (replies.size() >= kOwedBytesMax) send_owed();
}

void IoThread::send_owed() {
  if (owed.empty()) return;
  uint64_t log_offset = 0;
  for (const Owed& one : owed) log_offset = std::max(log_offset, one.log_offset);
  if (log_offset > 0 && !append_log->is_safe(log_offset)) append_log->write();
  size_t begin = 0;
  for (const Owed& one : owed) {
    one.connection->send_owed(replies.view().substr(begin, one.end - begin), one.log_offset);
    begin = one.end;
  }
  owed.clear();
  truncate_replies(0);
  replies.shrink(kReplyBytesKept);
}

void IoThread::truncate_replies(size_t mark) {
  replies.truncate(mark);
  const auto first = std::ranges::lower_bound(write_replies, mark, {}, &Span::begin);
  write_replies.erase(first, write_replies.end());
}

void IoThread::finish_round() {
  send_owed();
  while (std::exchange(commit_is_due, false)) {
    // Before the commit, so that the end of a sync which is under way is told.
    is_awaiting_log = true;
    append_log->commit(std::exchange(new_awaiting_log, 0));
    release_safe();
    send_owed();
  }
  for (const uint64_t id : closed) connections.erase(id);
  closed.clear();
}

void IoThread::await_log(std::shared_ptr<Connection> connection) {
  awaiting_log.push_back(std::move(connection));
  ++new_awaiting_log;
  commit_is_due = true;
}

void IoThread::go_on_with_log() {
  release_safe();
  if (!awaiting_log.empty()) commit_is_due = true;
}

void IoThread::release_safe() {
  // Before the first look, so that no progress goes by untold.
  is_awaiting_log = true;
  releasing.swap(awaiting_log);
  for (auto& connection : releasing) {
    if (!connection->release()) awaiting_log.push_back(std::move(connection));
  }
  releasing.clear();
  if (awaiting_log.empty()) is_awaiting_log = false;
}

void IoThread::check_acks() {
  for (const uint64_t id : std::set(awaiting_acks)) {
    const auto found = connections.find(id);
    if (found != connections.end()) found->second->check_acks();
  }
}

IoThreads::IoThreads(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    threads_.push_back(std::make_unique<IoThread>(i));
    if (count > 1) threads_.back()->sharing = &sharing_;
  }
}

IoThreads::~IoThreads() {
  for ([[maybe_unused]] auto& thread : threads_) assert(!thread->thread.joinable());
}

void IoThreads::run() {
  for (size_t i = 1; i < threads_.size(); ++i) {
    IoThread& thread = *threads_[i];
    thread.thread = std::thread([&thread] {
      pthread_setname_np(pthread_self(), ("io-" + std::to_string(thread.index)).c_str());
      thread.run();
    });
  }
  threads_[0]->run();
  for (size_t i = 1; i < threads_.size(); ++i) threads_[i]->thread.join();
}

void IoThreads::stop() {
  post_to_each([](IoThread& thread) {
    for (const auto& [id, connection] : thread.connections) connection->close();
    thread.readiness.close();
    thread.work.reset();
  });
}

}  // namespace server::net
