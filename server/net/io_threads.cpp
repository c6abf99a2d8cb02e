// SPDX-License-Identifier: MIT
#include "server/net/io_threads.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <ctime>

#include "server/base/process/crash_log.h"
#include "server/base/process/start_thread.h"
#include "server/base/transport/stream.h"
#include "server/net/connection.h"

namespace server::net {

IoThread::IoThread(size_t thread_index, ReplyLog& log)
    : index(thread_index),
      context(1),  // one thread runs the context, but others post to it
      sockets(context),
      loop(context, sockets,
           [this] {
             gate.end_round();
             connections.end_round();
           }),
      gate(log, [this](bool waits) { waits ? log_waker.arm() : log_waker.disarm(); }),
      read_buffer(ClientInput::kReadBytes + Stream::kExtraBytesMax),
      batch(std::make_unique<RequestBatch>()),
      log_waker(loop, [this] { gate.release_safe(); }),
      blocked_waker(loop,
                    [this] { connections.for_each_blocked([](Connection& c) { c.poll(); }); }),
      work_(asio::make_work_guard(context)) {}

IoThread::~IoThread() = default;

void IoThread::stop() {
  connections.for_each([](Connection& connection) { connection.close(); });
  sockets.close();
  work_.reset();
}

bool IoThread::is_busy() {
  timespec used{};
  ::clock_gettime(cpu_clock_, &used);
  return share_.is_busy(std::chrono::steady_clock::now().time_since_epoch(),
                        std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec));
}

IoThreads::IoThreads(size_t count, ReplyLog& log) : log_(log) {
  for (size_t i = 0; i < count; ++i) threads_.push_back(std::make_unique<IoThread>(i, log));
}

IoThreads::~IoThreads() {
  for ([[maybe_unused]] auto& thread : threads_) assert(!thread->thread_.joinable());
}

IoThread& IoThreads::next() {
  // With `appendfsync always`, a new client goes to the first thread that is not busy. The clients
  // then share few threads, and one sync serves the writes of more clients. A thread that already
  // has kClientsMax clients gets no further ones, because even their small commands can overload
  // it.
  constexpr size_t kClientsMax = 256;
  if (log_.syncs_before_replies()) {
    const auto found = std::ranges::find_if(threads_, [](const auto& thread) {
      return thread->connections.count() < kClientsMax && !thread->is_busy();
    });
    if (found != threads_.end()) return **found;
  }
  return *threads_[next_++ % threads_.size()];
}

void IoThreads::run() {
  ::pthread_getcpuclockid(::pthread_self(), &threads_[0]->cpu_clock_);
  for (size_t i = 1; i < threads_.size(); ++i) {
    IoThread& thread = *threads_[i];
    thread.thread_ = start_thread("io-" + std::to_string(thread.index), [&thread] {
      const CrashStack crash_stack;
      thread.loop.run();
    });
    ::pthread_getcpuclockid(thread.thread_.native_handle(), &thread.cpu_clock_);
  }
  threads_[0]->loop.run();
  for (size_t i = 1; i < threads_.size(); ++i) threads_[i]->thread_.join();
}

void IoThreads::stop() {
  post_to_each([](IoThread& thread) { thread.stop(); });
}

}  // namespace server::net
