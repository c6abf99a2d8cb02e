// SPDX-License-Identifier: MIT
//
// SlowLog: the last commands that took long, for SLOWLOG.
//
// Invariants: ids grow by one and are never used twice; an entry is bounded, whatever the command
// was: 32 words of 128 bytes.
// Thread safety: all members may be called from any thread. Entries are immutable.
// Source: Redis 7.0.15, SLOWLOG GET.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace server {

struct SlowCommand {
  uint64_t id = 0;
  int64_t time_s = 0;  // wall clock at its end
  int64_t duration_us = 0;
  std::vector<std::string> words;  // as trimmed_words() has left them
  std::string address;
  std::string client_name;
};

class SlowLog {
 public:
  using Entries = std::vector<std::shared_ptr<const SlowCommand>>;

  // Gives the command its id. Then drops the oldest entries above `length_max`.
  void add(SlowCommand command, size_t length_max);
  // The newest first.
  Entries newest(size_t count) const;
  size_t size() const;
  void clear();

 private:
  mutable std::mutex mutex_;  // guards the rest
  uint64_t next_id_ = 0;
  std::deque<std::shared_ptr<const SlowCommand>> entries_;  // the newest in front
};

inline constexpr size_t kSlowWordBytesMax = 128;

// The word at an index that lacks so many bytes at its end; none as a rule.
struct CutWord {
  size_t index = ~size_t{0};
  size_t missing_bytes = 0;
};

// The words that the log keeps of a command. They name the number of words and bytes left out.
// REQUIRES: a word that lacks bytes has kSlowWordBytesMax of them.
std::vector<std::string> trimmed_words(std::span<const std::string_view> words, CutWord cut = {});

}  // namespace server
