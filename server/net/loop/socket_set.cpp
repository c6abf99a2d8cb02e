// SPDX-License-Identifier: MIT
#include "server/net/loop/socket_set.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace server::net {
namespace {

int new_set() {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  if (set < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  return set;
}

}  // namespace

SocketSet::SocketSet(asio::io_context& context) : set_(context, new_set()) {
  await();
}

void SocketSet::close() {
  ErrorCode ignored;
  set_.close(ignored);
  count_ = 0;
}

bool SocketSet::add(int descriptor, Watcher& watcher, uint32_t events) {
  epoll_event event{events, {.ptr = &watcher}};
  return ::epoll_ctl(set_.native_handle(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void SocketSet::change(int descriptor, Watcher& watcher, uint32_t events) {
  epoll_event event{events, {.ptr = &watcher}};
  (void)::epoll_ctl(set_.native_handle(), EPOLL_CTL_MOD, descriptor, &event);
}

void SocketSet::remove(int descriptor, Watcher& watcher) {
  if (set_.is_open()) {
    (void)::epoll_ctl(set_.native_handle(), EPOLL_CTL_DEL, descriptor, nullptr);
  }
  for (size_t i = next_; i < count_; ++i) {
    if (events_[i].data.ptr == &watcher) events_[i].data.ptr = nullptr;
  }
}

void SocketSet::await() {
  set_.async_wait(decltype(set_)::wait_read, [this](const ErrorCode& error) {
    if (error) return;  // close() has closed the set
    deliver();
    if (set_.is_open()) await();
  });
}

size_t SocketSet::deliver() {
  if (!set_.is_open()) return 0;
  const int ready = ::epoll_wait(set_.native_handle(), events_.data(), kEventsPerRound, 0);
  if (ready <= 0) return 0;
  count_ = static_cast<size_t>(ready);
  const void* const only_one = ready == 1 ? events_[0].data.ptr : nullptr;
  is_lone_ = std::exchange(only_one_, only_one) == only_one && only_one != nullptr;
  for (next_ = 0; next_ < count_;) {
    const epoll_event& event = events_[next_++];
    auto* const watcher = static_cast<Watcher*>(event.data.ptr);
    // The pointer is null if an earlier event of this poll has removed the watcher.
    if (watcher != nullptr) watcher->on_ready(event.events);
  }
  next_ = count_ = 0;
  return static_cast<size_t>(ready);
}

}  // namespace server::net
