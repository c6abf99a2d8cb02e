// SPDX-License-Identifier: MIT
//
// Writes reports to a file from signal handlers. A report consists of text and the stack of the
// calling thread.
//
// Invariants: after prepare_reports() no function of this file allocates memory or takes a lock.
// Thread safety: prepare_reports() is called once, before other threads start. Any thread may call
// the other functions.
// Source: signal-safety(7), backtrace(3).
#pragma once

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/descriptor.h"

namespace server {

// Prepares reports. `log_file` is the path of the file to which reports are appended; empty for
// standard error.
void prepare_reports(const std::string& log_file);

// ReportFile opens the file that prepare_reports() has named, and closes it when destroyed.
class ReportFile {
 public:
  ReportFile();

  // Returns the file's descriptor. Returns standard error if there is no file or it cannot be
  // opened.
  int descriptor() const { return file_.is_open() ? file_.get() : STDERR_FILENO; }

 private:
  const core::Descriptor file_;
};

// RawOutput writes text to a descriptor, by signal-safe calls only.
class RawOutput {
 public:
  explicit RawOutput(int descriptor) : descriptor_(descriptor) {}

  RawOutput& operator<<(std::string_view text);
  RawOutput& operator<<(int64_t number) { return put(number, 10); }
  RawOutput& hexadecimal(uint64_t number) {
    *this << "0x";
    return put(number, 16);
  }
  int descriptor() const { return descriptor_; }

 private:
  template <class Number>
  RawOutput& put(Number number, int base) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
    return *this << std::string_view(digits.data(), static_cast<size_t>(end - digits.data()));
  }

  const int descriptor_;
};

// Writes the stack of the calling thread, one line per frame.
void write_stack(RawOutput& out);

}  // namespace server
