// SPDX-License-Identifier: MIT
#include "server/net/io_threads.h"

#include <pthread.h>

#include <cassert>

#include "server/net/connection.h"

namespace server::net {

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
