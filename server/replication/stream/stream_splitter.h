// SPDX-License-Identifier: MIT
//
// StreamSplitter: cuts a leader's stream into units that are applied whole: a command, or all from
// MULTI to EXEC.
//
//   splitter.append(bytes);
//   while (splitter.next() == StreamSplitter::Status::kUnit) apply(splitter.commands());
//
// Invariants: the units' bytes, one after the other, are the bytes appended; how those were cut
// makes no difference. A group is returned only once its EXEC has arrived. Memory is allocated for
// bytes that have arrived, not for announced ones. After kError, reset() must be called.
// Thread safety: none; one user at a time.
// Source: docs/replication.md, "The replica's stream".
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/request_parser.h"

namespace server {

class StreamSplitter {
 public:
  enum class Status { kNeedMore, kUnit, kError };
  using Command = std::vector<std::string_view>;

  // A unit is held in memory until it is complete, so one longer than `unit_bytes_max` is an error.
  explicit StreamSplitter(size_t unit_bytes_max);

  void append(std::string_view bytes);
  // Releases the last unit and looks for the next one.
  Status next();

  // Valid after kUnit; a view until the next call. Includes the bytes before the unit's first
  // command.
  std::string_view bytes() const;
  // Returns the commands, including MULTI and EXEC.
  std::span<const Command> commands() const { return {commands_.data(), command_count_}; }
  bool is_group() const { return command_count_ > 1; }

  // Valid after kError.
  std::string_view error() const { return error_; }
  // Returns whether the error is a unit that is too long.
  bool unit_is_too_big() const { return unit_is_too_big_; }
  // Returns the number of bytes appended but not yet returned in a unit.
  size_t pending_bytes() const { return buffer_.size() - start_ - unit_bytes_; }
  void reset();

 private:
  struct Word {
    size_t offset;  // from the unit's start
    size_t size_bytes;
  };

  Status fail(std::string_view reason);
  bool skip_to_command();
  void record_command();
  Status finish_unit();

  const size_t unit_bytes_max_;
  protocol::RequestParser parser_;
  Command command_;  // the last command parsed: views into buffer_
  std::string buffer_;
  size_t start_ = 0;       // start of the unit in buffer_
  size_t unit_bytes_ = 0;  // size of the unit that was returned
  size_t parsed_ = 0;      // bytes of the unit that were parsed
  bool in_group_ = false;
  // Positions of the unit's words. Offsets, because the buffer may move.
  std::vector<Word> words_;
  std::vector<size_t> word_counts_;
  std::vector<Command> commands_;  // only grows, so that its vectors keep their storage
  size_t command_count_ = 0;
  std::string error_;
  bool unit_is_too_big_ = false;
};

}  // namespace server
