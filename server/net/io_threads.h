// SPDX-License-Identifier: MIT
//
// IoThreads: the threads that serve connections, each with an io_context of its own.
//
// Invariants: a connection lives on one thread from accept to close; what it needs from others
// is posted to that thread.
// Thread safety: post() from any thread; everything else of an IoThread from that thread only.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/release_storage.h"
#include "protocol/reply_writer.h"
#include "server/durability/append_log.h"
#include "server/net/asio_types.h"
#include "server/net/loop_sharing.h"
#include "server/net/readiness.h"
#include "server/pubsub/pub_sub.h"

namespace server::net {

class Connection;

// Requests parsed ahead of their execution; the views are into the bytes they were parsed from.
struct RequestBatch {
  struct Request {
    size_t first = 0;  // of `words`
    size_t count = 0;
    size_t end = 0;  // bytes from the start of the batch to the end of this request
  };
  std::vector<std::string_view> words;
  std::vector<Request> requests;
  std::vector<std::span<const std::string_view>> arguments;  // of each request

  // To be called when the requests are done: a huge one must not hold its megabytes.
  void release_large() {
    constexpr size_t kKeptWords = 16384;
    if (words.capacity() > kKeptWords) core::release_storage(words);
  }
};

struct IoThread {
  explicit IoThread(size_t thread_index)
      : index(thread_index),
        // One thread runs it, and sockets are used from that thread only: no locks around I/O.
        context(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),
        work(asio::make_work_guard(context)),
        readiness(context),
        read_buffer(kReadBufferBytes) {}

  // Runs the function on this thread, soon. From any thread.
  template <class Function>
  void post(Function&& function) {
    asio::post(context, std::forward<Function>(function));
    notice();
  }
  // Makes whoever drives the loop look what there is besides clients. From any thread.
  void notice() {
    has_posts = true;
    if (is_in_readiness) readiness.wake();
  }

  // Serves clients and what is posted until stop().
  void run();

  // The connection's replies are what has been added to `replies` since the last call; they leave
  // when the round ends, after the append log has come as far as `log_offset`.
  void owe(Connection& connection, uint64_t log_offset);
  // Sends what is owed before the round ends.
  void send_owed();
  // Takes back the replies behind `mark`.
  void truncate_replies(size_t mark);
  // Keeps a connection whose replies wait for the append log, and has the log committed when the
  // round ends: one write for all of them.
  void await_log(std::shared_ptr<Connection> connection);
  // Sends what has become safe.
  void release_safe();
  // Sends what has become safe, and has the log committed again for who still waits.
  void go_on_with_log();
  // Whether the caller runs in this loop.
  bool is_current() const;
  // Has the connections look whose commands wait for replicas.
  void check_acks();

  // One read batch: about 2,000 small commands; fits the second-level cache.
  static constexpr size_t kReadBufferBytes = size_t{64} * 1024;

  const size_t index;
  asio::io_context context;
  asio::executor_work_guard<Executor> work;
  Readiness readiness;
  // Shared by the thread's connections, one after the other.
  std::vector<char> read_buffer;
  RequestBatch batch;
  // Replies made in this round: first those owed, then those of the connection being served.
  protocol::OutputBuffer replies;
  // Where in `replies` those to commands that may write are, in their order.
  struct Span {
    size_t begin = 0;
    size_t end = 0;
  };
  std::vector<Span> write_replies;
  struct Owed {
    Connection* connection;
    size_t end;  // in `replies`; it begins where the one before ends
    uint64_t log_offset;
  };
  std::vector<Owed> owed;
  std::unordered_map<uint64_t, std::shared_ptr<Connection>> connections;  // by session id
  std::vector<uint64_t> closed;     // ids of connections that go when the round ends
  AppendLog* append_log = nullptr;  // set before the thread starts
  PubSub* pubsub = nullptr;         // set before the thread starts
  bool has_messages = false;        // in its inbox, perhaps
  std::vector<std::shared_ptr<Connection>> awaiting_log;
  std::vector<std::shared_ptr<Connection>> releasing;  // room for release_safe()
  size_t new_awaiting_log = 0;  // how many of them have begun to wait in this round
  bool commit_is_due = false;
  // Whether the log's progress must be told to this thread.
  std::atomic<bool> is_awaiting_log{false};
  std::set<uint64_t> awaiting_acks;  // session ids
  // Whether an acknowledgement must be told to this thread.
  std::atomic<bool> is_awaiting_acks{false};
  // Whether Asio has something to run, and whether this thread waits where Asio cannot tell it.
  // Either the thread sees the first or post() sees the second.
  std::atomic<bool> has_posts{false};
  std::atomic<bool> is_in_readiness{false};
  std::thread thread;

  LoopSharing* sharing = nullptr;  // set before the thread starts; null when there is one thread
  LoopSharing::Share share;
  // Tells the driving thread that this loop has something to do.
  struct LentWatcher final : Readiness::Watcher {
    explicit LentWatcher(IoThread& lent_loop) : loop(lent_loop) {}
    void on_ready(uint32_t events) override;
    IoThread& loop;
  };
  LentWatcher lent_watcher{*this};

 private:
  // Runs what has been posted and what timers are due.
  void run_posts();
  // Serves sockets without Asio while clients come; false when none has come for a while.
  bool serve();
  // The same for its own loop, and for that and those that have been lent to it.
  bool serve_alone();
  bool drive();
  // A round of all loops it drives; returns how many sockets were ready.
  size_t drive_round();
  bool has_posts_anywhere() const;
  // Sends what is owed, commits the log for those who wait for it, forgets what was closed.
  void finish_round();
};

class IoThreads {
 public:
  explicit IoThreads(size_t count);
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  IoThread& at(size_t index) { return *threads_[index]; }
  LoopSharing& sharing() { return sharing_; }
  size_t count() const { return threads_.size(); }
  // Round robin.
  IoThread& next() { return *threads_[next_++ % threads_.size()]; }

  // Runs thread 0 on the caller, the others on threads of their own; returns after stop().
  void run();
  // Closes every connection and lets run() return once their coroutines have ended.
  // Callable from any thread.
  void stop();

  template <class Function>
  void post_to_each(Function function) {
    for (auto& thread : threads_) thread->post([&t = *thread, function] { function(t); });
  }

 private:
  LoopSharing sharing_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  size_t next_ = 0;
};

}  // namespace server::net
