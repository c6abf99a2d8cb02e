// SPDX-License-Identifier: MIT
#include "server/net/readiness.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <system_error>

namespace server::net {
namespace {

int checked(int descriptor, const char* what) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
  return descriptor;
}

}  // namespace

Readiness::Readiness(asio::io_context& context)
    : set_(context, checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      descriptor_(set_.native_handle()),
      wake_event_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  epoll_event event{EPOLLIN | EPOLLET, {.ptr = nullptr}};
  checked(::epoll_ctl(set_.native_handle(), EPOLL_CTL_ADD, wake_event_, &event), "epoll_ctl");
}

Readiness::~Readiness() {
  ::close(wake_event_);
}

void Readiness::close() {
  is_open_ = false;
  // The set itself stays until no thread can know of it any more.
  ErrorCode ignored;
  set_.cancel(ignored);
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
  if (is_open_) {
    (void)::epoll_ctl(set_.native_handle(), EPOLL_CTL_DEL, descriptor, nullptr);
  }
  for (size_t i = next_; i < count_; ++i) {
    if (events_[i].data.ptr == &watcher) events_[i].data.ptr = nullptr;
  }
}

bool Readiness::add(Readiness& other, Watcher& watcher) {
  return other.is_open_ && add(other.descriptor_, watcher, EPOLLIN);
}

void Readiness::remove(Readiness& other, Watcher& watcher) {
  remove(other.descriptor_, watcher);
}

void Readiness::wait(int wait_ms) {
  next_ = count_ = 0;
  if (!is_open_) return;
  const int ready =
      ::epoll_wait(set_.native_handle(), events_.data(), static_cast<int>(events_.size()), wait_ms);
  if (ready > 0) count_ = static_cast<size_t>(ready);
}

size_t Readiness::deliver() {
  size_t delivered = 0;
  while (next_ < count_) {
    const epoll_event& event = events_[next_++];
    auto* const watcher = static_cast<Watcher*>(event.data.ptr);
    if (watcher == nullptr) continue;  // the wake-up, or removed meanwhile
    watcher->on_ready(event.events);
    ++delivered;
  }
  return delivered;
}

void Readiness::wake() {
  (void)::eventfd_write(wake_event_, 1);
}

void Readiness::arm() {
  if (is_armed_ || !is_open_) return;
  is_armed_ = true;
  set_.async_wait(decltype(set_)::wait_read, [this](const ErrorCode&) { is_armed_ = false; });
}

}  // namespace server::net
