// SPDX-License-Identifier: MIT
//
// SlowLog: the latest slow commands, for SLOWLOG.
//
// Invariants: ids grow by one and are never reused. An entry has at most 32 words, with at most 128
// bytes of each word of the command.
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
  int64_t time_s = 0;  // Unix time in seconds at the end of the command
  int64_t duration_us = 0;
  std::vector<std::string> words;  // the command's words, shortened by trimmed_words()
  std::string address;
  std::string client_name;
};

class SlowLog {
 public:
  using Entries = std::vector<std::shared_ptr<const SlowCommand>>;

  // Adds the command and assigns its id. Then drops the oldest entries, so that at most
  // `length_max` entries remain.
  void add(SlowCommand command, size_t length_max);
  // Returns up to `count` entries, newest first.
  Entries newest(size_t count) const;
  size_t size() const;
  void clear();

 private:
  mutable std::mutex mutex_;  // this mutex guards the members below
  uint64_t next_id_ = 0;
  std::deque<std::shared_ptr<const SlowCommand>> entries_;  // entries, the newest first
};

inline constexpr size_t kSlowWordBytesMax = 128;

// The word that is truncated in a command: its index, and the number of bytes missing at its end.
// The default value means that no word is truncated.
struct CutWord {
  size_t index = ~size_t{0};
  size_t missing_bytes = 0;
};

// Returns the words of a command as the log stores them: shortened, with the numbers of omitted
// words and bytes. REQUIRES: if `cut` names a word, at least kSlowWordBytesMax bytes of that word
// are in `words`.
std::vector<std::string> trimmed_words(std::span<const std::string_view> words, CutWord cut = {});

}  // namespace server
