// SPDX-License-Identifier: MIT
//
// SocketSet: finds which of a thread's sockets can be read or written, with one system call for all
// of them.
//
// Asio re-arms each socket with a system call for each wait. With fifty clients that send one
// command at a time, that is a tenth of the server's work. So sockets are in a level-triggered
// epoll set, and Asio waits for the set as if it were one socket.
//
// Invariants: a watcher is called only between add() and remove(); calls are never nested.
// Thread safety: all members must be called on the thread that runs the io_context.
// Source: epoll(7), "an epoll file descriptor can itself be polled".
#pragma once

#include <sys/epoll.h>

#include <array>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstdint>

#include "server/net/loop/asio_types.h"

namespace server::net {

class SocketSet {
 public:
  class Watcher {
   public:
    // Called with the events that epoll reports: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR, and
    // EPOLLRDHUP if it was asked for.
    virtual void on_ready(uint32_t events) = 0;

   protected:
    ~Watcher() = default;
  };

  // Starts to wait for events. REQUIRES: close() is called before the context is destroyed.
  explicit SocketSet(asio::io_context& context);
  SocketSet(const SocketSet&) = delete;
  SocketSet& operator=(const SocketSet&) = delete;

  // Stops calling watchers and leaves the io_context without pending work.
  void close();

  // Adds a socket. Returns false if the kernel rejects it. The watcher must outlive its
  // registration.
  [[nodiscard]] bool add(int descriptor, Watcher& watcher, uint32_t events);
  void change(int descriptor, Watcher& watcher, uint32_t events);
  void remove(int descriptor, Watcher& watcher);

  // Calls the watchers of the sockets that are ready now, and returns their number.
  size_t deliver();
  // Returns whether to poll the sockets again at once. Returns false while only one client sends.
  // That client waits for its reply, so nothing can be ready right after it was served.
  bool may_have_more() const { return !is_lone_; }

 private:
  void await();

  static constexpr size_t kEventsPerRound = 256;
  asio::posix::basic_stream_descriptor<Executor> set_;
  std::array<epoll_event, kEventsPerRound> events_{};
  // Index of the next event of the last poll, so that remove() can drop undelivered events of its
  // socket.
  size_t next_ = 0;
  size_t count_ = 0;
  // The only watcher that was ready at the last delivery of events; null if several were ready.
  // `is_lone_` is true if the same watcher was also the only one at the delivery before the last.
  const void* only_one_ = nullptr;
  bool is_lone_ = false;
};

}  // namespace server::net
