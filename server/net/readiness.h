// SPDX-License-Identifier: MIT
//
// Readiness: tells which of a thread's sockets can be read or written, asking the kernel once per
// round for all of them.
//
// Asio re-arms every socket with a system call of its own for each wait. With fifty clients that
// send one command at a time that is a tenth of the server's work, so sockets sit in a
// level-triggered epoll set of their own. While clients come, the thread waits in that set; when
// none does, it sleeps in Asio, which waits for the set as if it were one socket.
//
// Invariants: a watcher is called only between add() and remove(); calls are never nested.
// Thread safety: wake() from any thread; all other members from the owning I/O thread only.
// Source: epoll(7), "an epoll file descriptor can itself be polled".
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
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
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // Ends what arm() began; deliver() then does nothing.
  void close();

  // False when the kernel refuses. The watcher must outlive its registration.
  [[nodiscard]] bool add(int descriptor, Watcher& watcher, uint32_t events);
  void change(int descriptor, Watcher& watcher, uint32_t events);
  void remove(int descriptor, Watcher& watcher);

  // Another thread's set as a member of this one: ready when something in it is. The other need not
  // stand still.
  [[nodiscard]] bool add(Readiness& other, Watcher& watcher);
  void remove(Readiness& other, Watcher& watcher);

  // Asks the kernel once, waiting at most `wait_ms`.
  void wait(int wait_ms);
  // Calls the watchers of what the last wait() found ready, once. Returns how many there were; 0
  // too when wake() ended the wait.
  size_t deliver();
  // Ends a wait(), the present one or else the next.
  void wake();
  // Makes Asio return from sleep when something in the set is ready.
  void arm();

 private:
  static constexpr size_t kEventsPerRound = 256;
  asio::posix::basic_stream_descriptor<Executor> set_;
  const int descriptor_;  // of the set, for other threads' sets
  std::atomic<bool> is_open_{true};
  const int wake_event_;  // an eventfd in the set, edge-triggered: it need not be read
  bool is_armed_ = false;
  std::array<epoll_event, kEventsPerRound> events_{};
  // What is left of the events being delivered, so that remove() can take its own out.
  size_t next_ = 0;
  size_t count_ = 0;
};

}  // namespace server::net
