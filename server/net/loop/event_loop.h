// SPDX-License-Identifier: MIT
//
// EventLoop: runs one thread's events in sequence: ready sockets, expired timers, functions posted
// by other threads.
//
// Polling Asio takes three system calls, and polling the set of sockets takes one. So the set is
// polled again while it has events, and Asio is polled after kSocketsPerWait sockets at the latest.
//
// Invariants: an iteration of the loop handles one event of Asio or the events of one poll of the
// sockets. `end_round` is called directly after each iteration.
// Thread safety: any thread may call post(). One thread calls run().
// Source: Boost.Asio 1.81, io_context::run_one.
#pragma once

#include <boost/asio/post.hpp>
#include <functional>
#include <utility>

#include "server/net/loop/asio_types.h"
#include "server/net/loop/socket_set.h"

namespace server::net {

class EventLoop {
 public:
  // After this number of socket events, the loop polls Asio for timers and posted functions. The
  // number may be exceeded, because the loop first handles all events of a poll of the sockets.
  static constexpr size_t kSocketsPerWait = 32;

  EventLoop(asio::io_context& context, SocketSet& sockets, std::function<void()> end_round)
      : context_(context), sockets_(sockets), end_round_(std::move(end_round)) {}
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Posts the function, which runs soon on the loop's thread.
  template <class Function>
  void post(Function&& function) {
    asio::post(context_, std::forward<Function>(function));
  }
  // Runs the loop. Returns when the io_context has no more work.
  void run() {
    while (context_.run_one() > 0) {
      end_round_();
      for (size_t reported = 0; reported < kSocketsPerWait && sockets_.may_have_more();) {
        const size_t ready = sockets_.deliver();
        if (ready == 0) break;
        end_round_();
        reported += ready;
      }
    }
  }

 private:
  asio::io_context& context_;
  SocketSet& sockets_;
  const std::function<void()> end_round_;
};

}  // namespace server::net
