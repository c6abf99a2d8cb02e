// SPDX-License-Identifier: MIT
//
// EventLoop: runs one thread's events in sequence: ready sockets, due timers, functions posted by
// other threads.
//
// Asking Asio takes three system calls, asking the set of sockets takes one. So the set is asked
// again while it has something, and Asio after kSocketsPerWait sockets at the latest.
//
// Invariants: a round is one event of Asio's or what one look at the sockets found; `end_round`
// follows each, and nothing runs in between.
// Thread safety: post() from any thread; run() on one.
// Source: Boost.Asio 1.81, io_context::run_one.
#pragma once

#include <boost/asio/post.hpp>
#include <functional>
#include <utility>

#include "server/loop/asio_types.h"
#include "server/loop/socket_set.h"

namespace server::net {

class EventLoop {
 public:
  // Timers and functions wait for so many sockets at most, and those of the round they came in.
  static constexpr size_t kSocketsPerWait = 32;

  EventLoop(asio::io_context& context, SocketSet& sockets, std::function<void()> end_round)
      : context_(context), sockets_(sockets), end_round_(std::move(end_round)) {}
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs the function on the loop's thread, soon.
  template <class Function>
  void post(Function&& function) {
    asio::post(context_, std::forward<Function>(function));
  }
  // Until the io_context has nothing to wait for any more.
  void run() {
    while (context_.run_one() > 0) {
      end_round_();
      for (size_t told = 0; told < kSocketsPerWait && sockets_.may_have_more();) {
        const size_t ready = sockets_.deliver();
        if (ready == 0) break;
        end_round_();
        told += ready;
      }
    }
  }

 private:
  asio::io_context& context_;
  SocketSet& sockets_;
  const std::function<void()> end_round_;
};

}  // namespace server::net
