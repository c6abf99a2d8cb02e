// SPDX-License-Identifier: MIT
//
// SocketSet: tells which of a thread's sockets can be read or written, asking the kernel once for
// all of them.
//
// Asio re-arms every socket with a system call of its own for each wait. With fifty clients that
// send one command at a time that is a tenth of the server's work, so sockets sit in a
// level-triggered epoll set, which Asio waits for as if it were one socket.
//
// Invariants: a watcher is called only between add() and remove(); calls are never nested.
// Thread safety: all members on the thread that runs the io_context.
// Source: epoll(7), "an epoll file descriptor can itself be polled".
#pragma once

#include <sys/epoll.h>

#include <array>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstdint>

#include "server/loop/asio_types.h"

namespace server::net {

class SocketSet {
 public:
  class Watcher {
   public:
    // `events` as epoll reports them: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR.
    virtual void on_ready(uint32_t events) = 0;

   protected:
    ~Watcher() = default;
  };

  // Waits from now on. REQUIRES: close() before the context ends.
  explicit SocketSet(asio::io_context& context);
  SocketSet(const SocketSet&) = delete;
  SocketSet& operator=(const SocketSet&) = delete;

  // Stops calling watchers and leaves the io_context without pending work.
  void close();

  // False when the kernel refuses. The watcher must outlive its registration.
  [[nodiscard]] bool add(int descriptor, Watcher& watcher, uint32_t events);
  void change(int descriptor, Watcher& watcher, uint32_t events);
  void remove(int descriptor, Watcher& watcher);

  // Calls the watchers of the sockets that are ready now; how many these were.
  size_t deliver();
  // False while one client is all that sends: it waits for its reply first, so that nothing can be
  // ready right after it was served.
  bool may_have_more() const { return !is_lone_; }

 private:
  void await();

  static constexpr size_t kEventsPerRound = 256;
  asio::posix::basic_stream_descriptor<Executor> set_;
  std::array<epoll_event, kEventsPerRound> events_{};
  // Events not yet delivered in this round, so that remove() can drop its own.
  size_t next_ = 0;
  size_t count_ = 0;
  // Who alone was ready when last something was, and whether it was the same as the time before.
  const void* only_one_ = nullptr;
  bool is_lone_ = false;
};

}  // namespace server::net
