// SPDX-License-Identifier: MIT
//
// The main program of the unit tests. With BLOOMERY_ONE_THREAD, a test fails if it starts a thread
// or listens on a socket. The source of such a test must be listed in threaded_tests.txt, so that
// ThreadSanitizer runs the test.
#include <gtest/gtest.h>

#if defined(BLOOMERY_ONE_THREAD) && !defined(BLOOMERY_ASAN) && !defined(BLOOMERY_TSAN)
#include <dlfcn.h>
#include <pthread.h>
#include <sys/socket.h>

#include <atomic>

namespace {

std::atomic<const char*> forbidden_call{nullptr};

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

class OneThreadListener final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { forbidden_call = nullptr; }
  void OnTestEnd(const testing::TestInfo& info) override {
    if (const char* name = forbidden_call.exchange(nullptr)) {
      ADD_FAILURE() << "this test calls " << name << ": add its file to tests/threaded_tests.txt ("
                    << info.file() << ")";
    }
  }
};

}  // namespace

// The functions below replace functions of the C library. Libraries that the test uses also call
// these functions.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*function)(void*), void* argument) {
  forbidden_call = "pthread_create()";
  return next<decltype(&pthread_create)>("pthread_create")(thread, attributes, function, argument);
}

extern "C" int listen(int socket, int backlog) {
  forbidden_call = "listen()";
  return next<decltype(&listen)>("listen")(socket, backlog);
}

#define BLOOMERY_CHECKS_CALLS
#endif

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
#ifdef BLOOMERY_CHECKS_CALLS
  testing::UnitTest::GetInstance()->listeners().Append(new OneThreadListener);
#endif
  return RUN_ALL_TESTS();
}
