// SPDX-License-Identifier: MIT
//
// EventLoop: runs one thread's events in sequence: ready sockets, due timers, functions posted by
// other threads.
//
// Invariants: a round is one event; `end_round` follows each, and nothing runs in between.
// Thread safety: post() from any thread; run() on one.
// Source: Boost.Asio 1.81, io_context::run_one.
#pragma once

#include <boost/asio/post.hpp>
#include <functional>
#include <utility>

#include "server/loop/asio_types.h"

namespace server::net {

class EventLoop {
 public:
  EventLoop(asio::io_context& context, std::function<void()> end_round)
      : context_(context), end_round_(std::move(end_round)) {}
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs the function on the loop's thread, soon.
  template <class Function>
  void post(Function&& function) {
    asio::post(context_, std::forward<Function>(function));
  }
  // Until the io_context has nothing to wait for any more.
  void run() {
    while (context_.run_one() > 0) end_round_();
  }

 private:
  asio::io_context& context_;
  const std::function<void()> end_round_;
};

}  // namespace server::net
