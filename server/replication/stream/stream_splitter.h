// SPDX-License-Identifier: MIT
//
// StreamSplitter: cuts a leader's stream into units that are applied whole. A unit is one command,
// or all commands from MULTI to EXEC.
//
//   splitter.append(bytes);
//   while (splitter.next() == StreamSplitter::Status::kUnit) apply(splitter.commands());
//
// Invariants: the bytes of all units are the appended bytes, in their order. The sizes of the
// appended pieces make no difference. A transaction is returned only once its EXEC has arrived.
// Memory is allocated for bytes that have arrived, not for announced ones. After kError, reset()
// must be called.
// Thread safety: one thread at a time may use an object.
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

  // Returns the bytes of the unit, including empty lines before its first command. Valid after
  // kUnit, until the next call of next().
  std::string_view bytes() const { return std::string_view(buffer_).substr(start_, unit_bytes_); }
  // Returns the commands of the unit. A transaction includes its MULTI and EXEC.
  std::span<const Command> commands() const { return {commands_.data(), command_count_}; }
  bool is_group() const { return command_count_ > 1; }

  // Returns the error. Valid after kError.
  std::string_view error() const { return error_; }
  // Returns whether the error was caused by a unit that exceeds the limit.
  bool unit_is_too_big() const { return unit_is_too_big_; }
  // Returns the number of bytes appended but not yet returned in a unit.
  size_t pending_bytes() const { return buffer_.size() - start_ - unit_bytes_; }

 private:
  struct Word {
    size_t offset;  // offset from the start of the unit
    size_t size_bytes;
  };

  // Frees the memory of a big buffer whose bytes are all released.
  void free_empty_buffer();
  Status fail(std::string_view reason);
  bool skip_to_command();
  void record_command();
  Status finish_unit();

  const size_t unit_bytes_max_;
  protocol::RequestParser parser_;
  Command command_;  // the last parsed command, whose words are views into buffer_
  std::string buffer_;
  size_t start_ = 0;       // offset in buffer_ at which the unit starts
  size_t unit_bytes_ = 0;  // size of the unit that was returned
  size_t parsed_ = 0;      // number of the unit's bytes that were parsed
  bool in_group_ = false;
  // Positions of the unit's words. They are offsets, because the buffer may move.
  std::vector<Word> words_;
  std::vector<size_t> word_counts_;
  // The vector shrinks only after a unit with very many commands, so that its elements keep their
  // memory.
  std::vector<Command> commands_;
  size_t command_count_ = 0;
  std::string error_;
  bool unit_is_too_big_ = false;
};

}  // namespace server
