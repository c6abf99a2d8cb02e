// SPDX-License-Identifier: MIT
#include "server/replication/stream/stream_splitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/memory/release_storage.h"
#include "protocol/arguments.h"

namespace server {
namespace {

// A leader may send longer arguments than clients can, such as values that grew by APPEND.
protocol::Limits stream_limits(size_t unit_bytes_max) {
  protocol::Limits limits;
  limits.bulk_size_max_bytes = unit_bytes_max;
  return limits;
}

// These commands end a transaction or reset the connection. This server would execute the commands
// after them differently than the leader did. So a stream with one of these commands is rejected.
constexpr std::array<std::string_view, 3> kAboutConnection = {"DISCARD", "RESET", "QUIT"};

bool is_about_connection(std::string_view name) {
  return std::ranges::any_of(kAboutConnection, [&](std::string_view known) {
    return protocol::equals_ignore_case(name, known);
  });
}

// After a big transaction or command, buffers above these sizes are freed.
constexpr size_t kKeptBytes = size_t{1} << 20;
constexpr size_t kKeptCommands = 1024;
constexpr size_t kKeptWords = 16384;

template <class Container>
void release_if_large(Container& words) {
  if (words.capacity() > kKeptWords) core::release_storage(words);
}

}  // namespace

StreamSplitter::StreamSplitter(size_t unit_bytes_max)
    : unit_bytes_max_(unit_bytes_max), parser_(stream_limits(unit_bytes_max)) {}

void StreamSplitter::append(std::string_view bytes) {
  start_ += unit_bytes_;
  unit_bytes_ = 0;
  if (start_ == buffer_.size()) {
    free_empty_buffer();
  } else if (start_ > buffer_.size() / 2) {
    buffer_.erase(0, start_);
    start_ = 0;
  }
  buffer_.append(bytes);
}

void StreamSplitter::free_empty_buffer() {
  buffer_.clear();
  if (buffer_.capacity() > kKeptBytes) buffer_.shrink_to_fit();
  start_ = 0;
}

StreamSplitter::Status StreamSplitter::next() {
  start_ += unit_bytes_;
  unit_bytes_ = 0;
  for (size_t i = 0; i < command_count_; ++i) release_if_large(commands_[i]);
  if (!error_.empty()) return Status::kError;
  for (;;) {
    if (!skip_to_command()) return fail("a leader sends its commands as arrays");
    command_.clear();
    const auto status = parser_.parse(std::string_view(buffer_).substr(start_ + parsed_), command_);
    if (status == protocol::RequestParser::Status::kError) return fail(parser_.error());
    if (status == protocol::RequestParser::Status::kRequest) record_command();
    parsed_ += parser_.consumed();
    const bool is_whole = status == protocol::RequestParser::Status::kRequest;
    if ((is_whole ? parsed_ : buffer_.size() - start_) > unit_bytes_max_) {
      unit_is_too_big_ = true;
      return fail(fmt::format("a unit of more than {} bytes", unit_bytes_max_));
    }
    if (!is_whole) {
      if (start_ == buffer_.size()) free_empty_buffer();
      return Status::kNeedMore;
    }
    const std::string_view name = command_.front();
    if (is_about_connection(name)) return fail(fmt::format("{}, which no leader sends", name));
    const bool begins = protocol::equals_ignore_case(name, "MULTI");
    const bool ends = protocol::equals_ignore_case(name, "EXEC");
    if (begins && in_group_) return fail("MULTI inside MULTI");
    if (ends && !in_group_) return fail("EXEC without MULTI");
    in_group_ = begins || (in_group_ && !ends);
    if (!in_group_) return finish_unit();
  }
}

// Skips empty lines, which count as bytes of the stream. Returns false if the next command is not
// an array of at least one word. Inline commands are rejected, because their words may not be
// contiguous in the buffer.
bool StreamSplitter::skip_to_command() {
  for (size_t at = start_ + parsed_; at < buffer_.size(); ++at, ++parsed_) {
    if (buffer_[at] == '\r' || buffer_[at] == '\n') continue;
    const char digit = at + 1 < buffer_.size() ? buffer_[at + 1] : '1';
    return buffer_[at] == '*' && digit >= '1' && digit <= '9';
  }
  return true;
}

void StreamSplitter::record_command() {
  const char* const unit = buffer_.data() + start_;
  for (const std::string_view word : command_) {
    words_.push_back({static_cast<size_t>(word.data() - unit), word.size()});
  }
  word_counts_.push_back(command_.size());
}

StreamSplitter::Status StreamSplitter::finish_unit() {
  unit_bytes_ = parsed_;
  parsed_ = 0;
  command_count_ = word_counts_.size();
  if (commands_.size() > std::max(command_count_, kKeptCommands)) {
    core::release_storage(commands_);
  }
  if (commands_.size() < command_count_) commands_.resize(command_count_);
  const std::string_view unit = bytes();
  size_t word = 0;
  for (size_t i = 0; i < command_count_; ++i) {
    commands_[i].clear();
    for (size_t left = word_counts_[i]; left > 0; --left, ++word) {
      commands_[i].push_back(unit.substr(words_[word].offset, words_[word].size_bytes));
    }
  }
  release_if_large(command_);
  words_.clear();
  release_if_large(words_);
  word_counts_.clear();
  release_if_large(word_counts_);
  return Status::kUnit;
}

StreamSplitter::Status StreamSplitter::fail(std::string_view reason) {
  error_ = reason;
  return Status::kError;
}

}  // namespace server
