// SPDX-License-Identifier: MIT
#include "server/base/log/recent_warnings.h"

#include <spdlog/sinks/base_sink.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>

namespace server {
namespace {

class RecentWarnings final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  RecentWarnings() { set_level(spdlog::level::warn); }

  std::vector<std::string> lines() {
    const std::scoped_lock lock(mutex_);
    return {lines_.begin(), lines_.end()};
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t formatted;
    formatter_->format(message, formatted);
    std::string line(formatted.data(), std::min(formatted.size(), kRecentWarningBytesMax));
    while (!line.empty() && line.back() == '\n') line.pop_back();
    if (lines_.size() == kRecentWarningsMax) lines_.pop_front();
    lines_.push_back(std::move(line));
  }
  void flush_() override {}

 private:
  std::deque<std::string> lines_;  // the stored lines; guarded by the mutex of base_sink
};

const std::shared_ptr<RecentWarnings>& shared_sink() {
  static const auto sink = std::make_shared<RecentWarnings>();
  return sink;
}

}  // namespace

spdlog::sink_ptr recent_warnings_sink() {
  return shared_sink();
}

std::vector<std::string> recent_warnings() {
  return shared_sink()->lines();
}

}  // namespace server
