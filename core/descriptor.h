// SPDX-License-Identifier: MIT
//
// Descriptor: owns a file descriptor, which the destructor closes.
//
// Thread safety: one thread at a time may use an object.
// Source: close(2).
#pragma once

#include <unistd.h>

#include <utility>

namespace core {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  bool is_open() const { return number_ >= 0; }
  int get() const { return number_; }
  // Gives up the descriptor and returns its number. The caller must close the descriptor.
  [[nodiscard]] int release() { return std::exchange(number_, -1); }
  // Closes the descriptor and returns the result of ::close(), because NFS may report a late write
  // error only then.
  int close() { return ::close(release()); }

 private:
  int number_;
};

}  // namespace core
