// SPDX-License-Identifier: MIT
//
// IoThreads: the threads that serve connections, each with a loop of its own.
//
// Invariants: a connection belongs to one thread from accept to close; other threads post tasks to
// that thread. At the end of each iteration of its event loop, a thread sends the replies to the
// commands of that iteration.
// Thread safety: any thread may call loop.post(), wake() of the wakers, and connections.count().
// All other members of an IoThread must be used on that thread.
#pragma once

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "server/durability/log/reply_log.h"
#include "server/net/connections.h"
#include "server/net/loop/asio_types.h"
#include "server/net/loop/event_loop.h"
#include "server/net/loop/loop_waker.h"
#include "server/net/loop/processor_share.h"
#include "server/net/loop/reply_gate.h"
#include "server/net/loop/socket_set.h"

namespace server::net {

struct RequestBatch;

struct IoThread {
  IoThread(size_t thread_index, ReplyLog& log);
  ~IoThread();

  const size_t index;
  asio::io_context context;
  SocketSet sockets;
  EventLoop loop;
  ReplyGate gate;
  Connections connections;
  // The read buffer, which the thread's connections use one at a time.
  std::vector<char> read_buffer;
  const std::unique_ptr<RequestBatch> batch;
  // log_waker is woken when the append log makes progress. blocked_waker is woken when an event for
  // which blocked commands wait may have happened.
  LoopWaker log_waker;
  LoopWaker blocked_waker;

 private:
  friend class IoThreads;
  // Closes the connections and sockets. The loop ends when it has no more timers and handlers.
  void stop();
  // Returns whether this I/O thread recently used more than half of a processor. Only I/O thread 0
  // may call this function, for any of the I/O threads.
  bool is_busy();

  asio::executor_work_guard<Executor> work_;
  std::thread thread_;
  clockid_t cpu_clock_{};
  ProcessorShare share_;
};

class IoThreads {
 public:
  IoThreads(size_t count, ReplyLog& log);
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  IoThread& at(size_t index) { return *threads_[index]; }
  size_t count() const { return threads_.size(); }
  // Returns the thread for the next connection, by round robin. With `appendfsync always`, returns
  // the first thread that is not busy, so that many clients share one commit of the log. Must be
  // called on I/O thread 0.
  IoThread& next();

  // Calls ReplyGate::set_permit() of each thread.
  void set_permit(const cluster::ClusterState* permit) {
    for (auto& thread : threads_) thread->gate.set_permit(permit);
  }

  // Calls ReplyGate::set_acks() of each thread.
  void set_acks(WriteAcks* acks) {
    for (auto& thread : threads_) thread->gate.set_acks(acks);
  }

  // Runs thread 0 on the calling thread and starts the others. Returns after stop().
  void run();
  // Closes every connection and socket. run() returns when the loops have no work left.
  // Thread-safe.
  void stop();

  template <class Function>
  void post_to_each(Function function) {
    for (auto& thread : threads_) thread->loop.post([&t = *thread, function] { function(t); });
  }

 private:
  const ReplyLog& log_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  size_t next_ = 0;
};

}  // namespace server::net
