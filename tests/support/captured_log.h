// SPDX-License-Identifier: MIT
//
// CapturedLog: captures the log messages that are written while the object exists.
//
// Thread safety: only one object may exist at a time, and no other thread may log during its
// lifetime.
#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace server {

class CapturedLog {
 public:
  CapturedLog() {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(stream_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", std::move(sink)));
  }
  ~CapturedLog() { spdlog::set_default_logger(before_); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  std::string text() const { return stream_.str(); }
  // Number of times that `words` occur in the log.
  size_t count(std::string_view words) const {
    const std::string all = text();
    size_t found = 0;
    for (size_t at = all.find(words); at != std::string::npos; at = all.find(words, at + 1)) {
      ++found;
    }
    return found;
  }

 private:
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream stream_;
};

}  // namespace server
