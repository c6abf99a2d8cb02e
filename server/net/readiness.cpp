// SPDX-License-Identifier: MIT
#include "server/net/readiness.h"

#include <boost/asio/co_spawn.hpp>
#include <system_error>

#include "server/log.h"

namespace server::net {

Readiness::Readiness(asio::io_context& context) : context_(context), set_(context) {
  const int descriptor = ::epoll_create1(EPOLL_CLOEXEC);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  set_.assign(descriptor);
}

void Readiness::start() {
  asio::co_spawn(context_, run(), [](const std::exception_ptr& failure) {
    if (failure) log_error("Waiting for clients ended unexpectedly");
  });
}

void Readiness::close() {
  ErrorCode ignored;
  set_.close(ignored);
}

bool Readiness::add(int descriptor, Watcher& watcher, uint32_t events) {
  epoll_event event{events, {.ptr = &watcher}};
  return ::epoll_ctl(set_.native_handle(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void Readiness::change(int descriptor, Watcher& watcher, uint32_t events) {
  epoll_event event{events, {.ptr = &watcher}};
  (void)::epoll_ctl(set_.native_handle(), EPOLL_CTL_MOD, descriptor, &event);
}

void Readiness::remove(int descriptor, Watcher& watcher) {
  if (set_.is_open()) {
    (void)::epoll_ctl(set_.native_handle(), EPOLL_CTL_DEL, descriptor, nullptr);
  }
  for (size_t i = next_; i < count_; ++i) {
    if (events_[i].data.ptr == &watcher) events_[i].data.ptr = nullptr;
  }
}

Awaitable<> Readiness::run() {
  while (set_.is_open()) {
    const auto [error] = co_await set_.async_wait(decltype(set_)::wait_read, kAsValue);
    if (error || !set_.is_open()) break;
    // While several clients are ready, more will be by the time they are served: asking again at
    // once is one system call, going through Asio three. The bound keeps timers on time.
    constexpr int kRoundsMax = 16;
    for (int round = 0; round < kRoundsMax && deliver() > 1; ++round) {
    }
  }
}

size_t Readiness::deliver() {
  const int ready =
      ::epoll_wait(set_.native_handle(), events_.data(), static_cast<int>(events_.size()), 0);
  count_ = ready > 0 ? static_cast<size_t>(ready) : 0;
  for (next_ = 0; next_ < count_;) {
    const epoll_event& event = events_[next_++];
    auto* const watcher = static_cast<Watcher*>(event.data.ptr);
    if (watcher != nullptr) watcher->on_ready(event.events);
  }
  return count_;
}

}  // namespace server::net
