// SPDX-License-Identifier: MIT
//
// Readiness: tells which of a thread's client sockets can be read or written, asking the kernel
// once per wake-up for all of them.
//
// Asio re-arms every socket with a system call of its own for each wait. With fifty clients that
// send one command at a time that is a tenth of the server's work, so client sockets sit in a
// level-triggered epoll set, and Asio waits for that set as if it were one socket.
//
// Invariants: a watcher is called only between add() and remove(); calls are never nested.
// Thread safety: all members from the owning I/O thread only.
// Source: epoll(7), "an epoll file descriptor can itself be polled".
#pragma once

#include <sys/epoll.h>

#include <array>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstdint>

#include "server/net/asio_types.h"

namespace server::net {

class Readiness {
 public:
  class Watcher {
   public:
    // `events` as epoll reports them: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR.
    virtual void on_ready(uint32_t events) = 0;

   protected:
    ~Watcher() = default;
  };

  explicit Readiness(asio::io_context& context);

  // Spawns the waiting coroutine; it ends after close().
  void start();
  void close();

  // False when the kernel refuses. The watcher must outlive its registration.
  [[nodiscard]] bool add(int descriptor, Watcher& watcher, uint32_t events);
  void change(int descriptor, Watcher& watcher, uint32_t events);
  void remove(int descriptor, Watcher& watcher);

 private:
  Awaitable<> run();
  // Asks the kernel once and calls the watchers of what is ready; how many there were.
  size_t deliver();

  static constexpr size_t kEventsPerWakeUp = 256;
  asio::io_context& context_;
  asio::posix::basic_stream_descriptor<Executor> set_;
  std::array<epoll_event, kEventsPerWakeUp> events_{};
  // What is left of the events being delivered, so that remove() can take its own out.
  size_t next_ = 0;
  size_t count_ = 0;
};

}  // namespace server::net
