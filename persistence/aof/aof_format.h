// SPDX-License-Identifier: MIT
//
// Defines the names and annotation lines of the append log, which its writer and its reader share.
//
// An annotation is a line that begins with '#' where a command may begin; Redis and Valkey skip it.
// A file of Bloomery begins with a version line. Each flushed batch ends with a checksum line over
// all preceding bytes of the file. So a flipped bit is found at the next checksum line.
//
// A position line states which position in the replication stream the data have reached after all
// commands before the line.
//
// Invariants: an annotation of Bloomery, including its line end, has fewer than 128 bytes, so that
// every loader skips the whole line. A RunningChecksum covers exactly the first size_bytes() bytes
// of its file.
// Thread safety: pure functions; a RunningChecksum has one user at a time.
// Source: docs/formats.md, "Append log".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "persistence/rdb/rdb_replication_info.h"

namespace persistence {

enum class AofBaseFormat : uint8_t { kRdb, kCommands };

// The names of the files of a log, without their directory. `name` is the option appendfilename.
class AofNames {
 public:
  explicit AofNames(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  std::string base(uint64_t sequence, AofBaseFormat format) const;
  std::string incremental(uint64_t sequence) const;
  std::string manifest() const { return name_ + ".manifest"; }
  // Returns the name of a manifest that is being written.
  std::string temporary_manifest() const { return "temp-" + name_ + ".manifest"; }
  // Returns the temporary name that Redis gives the incremental (INCR) file while the append log is
  // being switched on.
  std::string temporary_incremental() const { return "temp-" + name_ + ".incr"; }

 private:
  std::string name_;
};

// Returns the name of a base while it is written, and until it is moved into the log's directory.
// The file lies in the parent directory.
std::string aof_finished_rewrite_name(int64_t process_id);
// Returns whether the name was made by aof_finished_rewrite_name(), or is the temporary name of a
// base that Redis was writing.
bool is_aof_rewrite_name(std::string_view name);

// RunningChecksum: the CRC-64 of a file from its first byte. Before a write that may fail, keep a
// copy, to restore the checksum after a failure.
class RunningChecksum {
 public:
  void update(std::string_view bytes);
  uint64_t value() const { return value_; }
  uint64_t size_bytes() const { return size_bytes_; }
  bool operator==(const RunningChecksum&) const = default;

 private:
  uint64_t value_ = 0;
  uint64_t size_bytes_ = 0;
};

// Appends the header of Bloomery's files: the version line and a checksum line over it. With the
// checksum line, a flipped bit cannot make the file look like another server's. REQUIRES:
// `checksum` is the checksum of an empty file.
void append_aof_header(std::string& bytes, RunningChecksum& checksum);

// Ends a batch: adds `batch` to the checksum, then appends the checksum line and adds that line to
// the checksum too. REQUIRES: exactly `batch` will follow the bytes that `checksum` covers.
void end_aof_batch(std::string& batch, RunningChecksum& checksum);

// Appends `#TS:<unix seconds>` and a line end, for aof-timestamp-enabled.
void append_timestamp_line(std::string& bytes, int64_t unix_seconds);

// Appends `#bloomery-pos:<id> <offset> <database>` and a line end, with ` <epoch>` after the
// database if the epoch is not 0. REQUIRES: a Bloomery server produced the stream.
void append_position_line(std::string& bytes, const RdbReplicationInfo& position);

// kAofVersionText and checksum_text() are annotations without a line end, because a manifest ends
// its lines with LF, but the log with CR LF.
inline constexpr std::string_view kAofVersionText = "#bloomery-ver:1";
inline constexpr uint64_t kAofVersion = 1;
std::string checksum_text(uint64_t checksum);

struct AofAnnotation {
  enum class Kind : uint8_t {
    kOther,      // an annotation of another server, or a comment
    kTimestamp,  // `value` is the unix time in seconds
    kVersion,    // `value` is the version of the format
    kChecksum,   // `value` is the checksum of the bytes before the line
    kPosition,   // `position` is the position in the replication stream
    kMalformed,  // the line begins like a line of this server but is invalid
  };
  Kind kind = Kind::kOther;
  uint64_t value = 0;
  std::optional<RdbReplicationInfo> position = {};
};

// The reason why a file or a manifest of a later version is rejected.
namespace aof_fault {
inline constexpr std::string_view kLaterVersion = "written by a later version";
}  // namespace aof_fault

// Parses an annotation. REQUIRES: `line` begins with '#' and has no line end.
AofAnnotation parse_annotation(std::string_view line);

// Returns the offset of the first bytes that look like a checksum line with its CR LF. These bytes
// may lie inside a command. An incomplete line at the end is ignored.
std::optional<size_t> find_checksum_line(std::string_view bytes);
inline constexpr size_t kChecksumLineBytes = 34;

// The maximum size of an annotation that loaders skip, including its line end.
inline constexpr size_t kAnnotationMaxBytes = 1023;

}  // namespace persistence
