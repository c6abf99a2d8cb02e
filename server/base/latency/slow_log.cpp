// SPDX-License-Identifier: MIT
#include "server/base/latency/slow_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace server {
namespace {

constexpr size_t kWordsMax = 32;

std::string trimmed(std::string_view word, size_t missing_bytes) {
  if (word.size() + missing_bytes <= kSlowWordBytesMax) return std::string(word);
  return fmt::format("{}... ({} more bytes)", word.substr(0, kSlowWordBytesMax),
                     word.size() + missing_bytes - kSlowWordBytesMax);
}

}  // namespace

std::vector<std::string> trimmed_words(std::span<const std::string_view> arguments, CutWord cut) {
  std::vector<std::string> result;
  const bool is_long = arguments.size() > kWordsMax;
  const size_t whole = is_long ? kWordsMax - 1 : arguments.size();
  for (size_t i = 0; i < whole; ++i) {
    result.push_back(trimmed(arguments[i], i == cut.index ? cut.missing_bytes : 0));
  }
  if (is_long) result.push_back(fmt::format("... ({} more arguments)", arguments.size() - whole));
  return result;
}

void SlowLog::add(SlowCommand command, size_t length_max) {
  const std::scoped_lock lock(mutex_);
  command.id = next_id_++;
  entries_.push_front(std::make_shared<const SlowCommand>(std::move(command)));
  while (entries_.size() > length_max) entries_.pop_back();
}

SlowLog::Entries SlowLog::newest(size_t count) const {
  const std::scoped_lock lock(mutex_);
  const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(std::min(count, entries_.size()));
  return {entries_.begin(), end};
}

size_t SlowLog::size() const {
  const std::scoped_lock lock(mutex_);
  return entries_.size();
}

void SlowLog::clear() {
  std::deque<std::shared_ptr<const SlowCommand>> dropped;  // entries that are freed after unlocking
  const std::scoped_lock lock(mutex_);
  entries_.swap(dropped);
}

}  // namespace server
