// SPDX-License-Identifier: MIT
#include "server/net/io_threads.h"

#include <pthread.h>

#include <cassert>

#include "server/net/connection.h"

namespace server::net {

void IoThread::await_log(std::shared_ptr<Connection> connection) {
  awaiting_log.push_back(std::move(connection));
  if (commit_is_posted) return;
  commit_is_posted = true;
  post([this] {
    commit_is_posted = false;
    commit_log();
    release_safe();
  });
}

void IoThread::release_safe() {
  // Before the first look, so that no progress goes by untold.
  is_awaiting_log = true;
  releasing.swap(awaiting_log);
  for (auto& connection : releasing) {
    if (!connection->release()) awaiting_log.push_back(std::move(connection));
  }
  releasing.clear();
  if (awaiting_log.empty()) is_awaiting_log = false;
}

IoThreads::IoThreads(size_t count) {
  for (size_t i = 0; i < count; ++i) threads_.push_back(std::make_unique<IoThread>(i));
}

IoThreads::~IoThreads() {
  for ([[maybe_unused]] auto& thread : threads_) assert(!thread->thread.joinable());
}

void IoThreads::run() {
  for (auto& thread : threads_) thread->readiness.start();
  for (size_t i = 1; i < threads_.size(); ++i) {
    IoThread& thread = *threads_[i];
    thread.thread = std::thread([&thread] {
      pthread_setname_np(pthread_self(), ("io-" + std::to_string(thread.index)).c_str());
      thread.context.run();
    });
  }
  threads_[0]->context.run();
  for (size_t i = 1; i < threads_.size(); ++i) threads_[i]->thread.join();
}

void IoThreads::stop() {
  post_to_each([](IoThread& thread) {
    for (const auto& [id, connection] : thread.connections) connection->close();
    thread.readiness.close();
    thread.work.reset();
  });
}

}  // namespace server::net
