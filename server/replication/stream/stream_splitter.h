// SPDX-License-Identifier: MIT
//
// StreamSplitter: cuts a leader's stream into units that are applied whole: a command, or all from
// MULTI to EXEC.
//
//   splitter.append(bytes);
//   while (splitter.next() == StreamSplitter::Status::kUnit) apply(splitter.commands());
//
// Invariants: the units' bytes, one after the other, are the bytes appended; how those were cut
// makes no difference. A group is handed out when its EXEC has come, not before. Memory is taken
// for bytes that have arrived, never for announced ones. After kError only reset() helps.
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

  // A unit longer than `unit_bytes_max` is an error: it is held in memory until it is whole.
  explicit StreamSplitter(size_t unit_bytes_max);

  void append(std::string_view bytes);
  // Lets go of the last unit and looks for the next one.
  Status next();

  // After kUnit; views until the next call. With what stood before its first command.
  std::string_view bytes() const;
  // MULTI and EXEC included.
  std::span<const Command> commands() const { return {commands_.data(), command_count_}; }
  bool is_group() const { return command_count_ > 1; }

  // After kError.
  std::string_view error() const { return error_; }
  // The error is that a unit is longer than it may be.
  bool unit_is_too_big() const { return unit_is_too_big_; }
  // Appended, but not yet handed out as a unit.
  size_t pending_bytes() const { return buffer_.size() - start_ - unit_bytes_; }
  void reset();

 private:
  struct Word {
    size_t offset;  // from the unit's start
    size_t size_bytes;
  };

  Status fail(std::string_view reason);
  bool skip_to_command();
  void note_command();
  Status finish_unit();

  const size_t unit_bytes_max_;
  protocol::RequestParser parser_;
  Command command_;  // the last one parsed: views into buffer_
  std::string buffer_;
  size_t start_ = 0;       // of the unit in buffer_
  size_t unit_bytes_ = 0;  // of the unit that was handed out
  size_t parsed_ = 0;      // bytes of the unit that the parser is done with
  bool in_group_ = false;
  // The words of the unit's commands, so that a buffer that moves does no harm.
  std::vector<Word> words_;
  std::vector<size_t> word_counts_;
  std::vector<Command> commands_;  // only grows, so that its vectors keep their storage
  size_t command_count_ = 0;
  std::string error_;
  bool unit_is_too_big_ = false;
};

}  // namespace server
