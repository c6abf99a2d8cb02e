// SPDX-License-Identifier: MIT
#include "persistence/journal.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <mutex>
#include <utility>

#include "core/memory/release_storage.h"
#include "core/short_bytes.h"

namespace persistence {
namespace {

thread_local Journal::Group* open_group = nullptr;

constexpr size_t kHeaderBytesMax = 24;
// Upper bounds on the encoded size of SELECT, and on that of MULTI and EXEC together.
constexpr size_t kSelectBytesMax = 40;
constexpr size_t kTransactionBytes = 32;
// Maximum capacity of an empty buffer that is kept for reuse. Each thread has such a buffer to
// encode its commands. A journal without an append log has another one.
constexpr size_t kCommandBytesKept = size_t{64} << 10;

// Writes a header such as "*12\r\n" or "$5\r\n", and returns its end.
char* write_header(char* to, char kind, uint64_t number) {
  *to++ = kind;
  if (number < 10) {
    *to++ = static_cast<char>('0' + number);
  } else {
    to = std::to_chars(to, to + kHeaderBytesMax, number).ptr;
  }
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

void append_select(std::string& out, unsigned database) {
  append_command(out, std::array<std::string_view, 2>{"SELECT", std::to_string(database)});
}

// select() is inlined, because usually the database is already selected.
inline void select(std::string& out, unsigned database, std::optional<unsigned>& selected) {
  if (selected == database) [[likely]]
    return;
  selected = database;
  append_select(out, database);
}

}  // namespace

void append_command(std::string& out, Words words) {
  // The string is resized once, so that its bytes are then stored without checks of its capacity.
  // Speed matters, because every change runs this code while the changed keys are locked.
  size_t most = kHeaderBytesMax;
  for (const std::string_view word : words) most += kHeaderBytesMax + word.size() + 2;
  const size_t begin = out.size();
  out.resize(begin + most);
  char* to = write_header(out.data() + begin, '*', words.size());
  for (const std::string_view word : words) {
    to = write_header(to, '$', word.size());
    core::copy_bytes(to, word);
    to += word.size();
    *to++ = '\r';
    *to++ = '\n';
  }
  out.resize(static_cast<size_t>(to - out.data()));
}

Journal::Group::Group(Journal& journal) : journal_(journal) {
  if (open_group == nullptr) open_group = this;
}

Journal::Group::~Group() {
  if (open_group != this) return;
  open_group = nullptr;
  if (!commands_.empty()) journal_.append_group(*this);
}

void Journal::Group::add(std::optional<unsigned> database, Words words, bool is_published) {
  append_command(bytes_, words);
  commands_.push_back({database, bytes_.size(), is_published});
  (is_published ? has_published_ : has_appended_) = true;
}

void Journal::append_active(unsigned database, Words words) {
  if (open_group == nullptr) return write(database, words);
  count_append();
  open_group->add(database, words, false);
}

bool Journal::has_open_group() {
  return open_group != nullptr && open_group->has_appended_;
}

void Journal::write(unsigned database, Words words) {
  count_append();
  // The command is encoded before the lock is taken, in memory that this processor probably has in
  // its cache.
  thread_local std::string command;
  command.clear();
  append_command(command, words);
  {
    const std::scoped_lock lock(mutex_);
    reserve(command.size() + kSelectBytesMax);
    write_to_both([&](std::optional<unsigned>& selected) {
      select(pending_, database, selected);
      pending_.append(command);
    });
  }
  if (command.capacity() > kCommandBytesKept) core::release_storage(command);
}

void Journal::append_group(const Group& group) {
  const size_t bytes_max =
      group.bytes_.size() + group.commands_.size() * kSelectBytesMax + kTransactionBytes;
  const std::scoped_lock lock(mutex_);
  if (!group.has_published_ || second_sink_ == nullptr) {
    if (!group.has_appended_) return;
    reserve(bytes_max);
    return write_to_both(
        [&](std::optional<unsigned>& selected) { write_group(pending_, group, false, selected); });
  }
  std::string whole;
  write_group(whole, group, true, second_sink_database_);
  second_sink_->append(whole);
  if (!group.has_appended_) return;
  reserve(bytes_max);
  const size_t begin = pending_.size();
  write_group(pending_, group, false, database_);
  publish(begin, nullptr);
}

void Journal::write_group(std::string& out, const Group& group, bool with_published,
                          std::optional<unsigned>& selected) {
  size_t count = 0;
  const Group::Command* first = nullptr;
  for (const Group::Command& command : group.commands_) {
    if (command.is_published && !with_published) continue;
    ++count;
    if (first == nullptr && command.database) first = &command;
  }
  // As in Redis, SELECT is written before MULTI. So a group with one command needs no MULTI, even
  // if a SELECT precedes the command.
  if (first != nullptr) select(out, *first->database, selected);
  const bool is_transaction = count > 1;
  if (is_transaction) append_command(out, std::array<std::string_view, 1>{"MULTI"});
  size_t begin = 0;
  for (const Group::Command& command : group.commands_) {
    if (!command.is_published || with_published) {
      if (command.database) select(out, *command.database, selected);
      out.append(group.bytes_, begin, command.end - begin);
    }
    begin = command.end;
  }
  if (is_transaction) append_command(out, std::array<std::string_view, 1>{"EXEC"});
}

void Journal::reserve(size_t bytes) {
  const size_t needed = pending_.size() + bytes;
  if (needed <= pending_.capacity()) return;
  const size_t grown = std::max(needed, 2 * pending_.capacity());
  // The old buffer is smaller than the new one. So twice the new one bounds their sum.
  pending_capacity_.store(2 * grown, std::memory_order_relaxed);
  pending_.reserve(grown);
}

void Journal::publish(size_t begin, StreamSink* sink) {
  if (sink != nullptr) sink->append(std::string_view(pending_).substr(begin));
  if (!is_logged_) pending_.resize(begin);
  if (pending_.empty() && pending_.capacity() > kCommandBytesKept) core::release_storage(pending_);
  pending_capacity_.store(pending_.capacity(), std::memory_order_relaxed);
  if (!is_logged_) return;
  end_.store(taken_ + pending_.size(), std::memory_order_release);
}

void Journal::set_active(bool active) {
  const std::scoped_lock lock(mutex_);
  is_logged_ = active;
  update_activity();
}

void Journal::set_second_sink(StreamSink* sink) {
  const std::scoped_lock lock(mutex_);
  second_sink_ = sink;
  update_activity();
}

void Journal::publish_to_replicas(Words words, std::optional<unsigned> database) {
  if (open_group != nullptr) return open_group->add(database, words, true);
  const std::scoped_lock lock(mutex_);
  if (second_sink_ == nullptr) return;
  std::string command;
  if (database) select(command, *database, second_sink_database_);
  append_command(command, words);
  second_sink_->append(command);
}

void Journal::suspend(bool suspended) {
  const std::scoped_lock lock(mutex_);
  is_suspended_ = suspended;
  update_activity();
}

void Journal::update_activity() {
  active_.store((is_logged_ || second_sink_ != nullptr) && !is_suspended_,
                std::memory_order_release);
}

uint64_t Journal::take(std::string& out) {
  assert(out.empty());
  const std::scoped_lock lock(mutex_);
  pending_.swap(out);
  pending_capacity_.store(pending_.capacity(), std::memory_order_relaxed);
  taken_ += out.size();
  return taken_;
}

void Journal::restate_database() {
  const std::scoped_lock lock(mutex_);
  database_.reset();
  second_sink_database_.reset();
}

}  // namespace persistence
