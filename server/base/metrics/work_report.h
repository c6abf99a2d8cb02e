// SPDX-License-Identifier: MIT
//
// WorkReport: reports the progress of long work: a line in the log every few seconds, and the
// progress line of the terminal.
//
//   WorkReport report("Loading", clock);
//   report.show(0.45, [] { return std::string("503 of 1118 MB"); });
//
// Invariants: work that ends within kFirstLineUs writes no line to the log. The destructor erases
// the progress line on the terminal.
// Thread safety: one thread at a time may use an object.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/clock.h"

namespace server {

class WorkReport {
 public:
  static constexpr int64_t kFirstLineUs = 5 * core::kSecondUs;
  static constexpr int64_t kLinesEveryUs = 5 * core::kSecondUs;

  // Begins the report. `work` is the start of each log line. `clock` must outlive the object.
  WorkReport(std::string work, const core::Clock& clock);
  ~WorkReport();
  WorkReport(const WorkReport&) = delete;
  WorkReport& operator=(const WorkReport&) = delete;

  // Reports progress. `share` is the completed fraction of the work, from 0 to 1; below 0 if
  // unknown. `details()` returns a text for the log line, and is called only for that line.
  template <class Details>
  void show(double share, Details&& details) {
    if (is_due(share)) log(share, details());
  }

 private:
  // Shows the completed fraction of the work on the terminal, if it is known. Returns whether a log
  // line is due.
  bool is_due(double share);
  void log(double share, const std::string& details) const;

  const std::string work_;
  const core::Clock& clock_;
  const int64_t begun_us_;
  int64_t next_line_us_;
};

// Returns the progress as "45 %, 503 of 1118 MB, about 3 s left", without the parts that are
// unknown.
std::string progress_text(double share, const std::string& details, double elapsed_s);

}  // namespace server
