// SPDX-License-Identifier: MIT
//
// Descriptor: an open file that is closed when it goes out of scope.
//
// Thread safety: none; one user at a time.
#pragma once

#include <unistd.h>

namespace persistence {

class Descriptor {
 public:
  // Takes over `number`; a negative one is no file.
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  // A late write error may show up only here (NFS), so the result counts.
  int close() {
    const int result = ::close(number_);
    number_ = -1;
    return result;
  }

 private:
  int number_;
};

}  // namespace persistence
