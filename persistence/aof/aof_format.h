// SPDX-License-Identifier: MIT
//
// The append log's names and annotation lines: what its writer and its reader must agree on.
//
// An annotation is a line that opens with '#' where a command may start; Redis and Valkey skip it.
// A file of ours opens with a version line, and each batch that is flushed ends with a checksum
// line over all bytes of the file before it: a bit that flips is found at the next such line.
//
// Invariants: a line of ours, its end included, has fewer than 128 bytes, so that every loader
// skips it whole. A RunningChecksum has taken in exactly the first size_bytes() bytes of its file.
// Thread safety: values and pure functions.
// Source: docs/formats.md, "Append log".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace persistence {

enum class AofBaseFormat : uint8_t { kRdb, kCommands };

// Names of the files of one log, without their directory. `name` is the option appendfilename.
class AofNames {
 public:
  explicit AofNames(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  std::string base(uint64_t sequence, AofBaseFormat format) const;
  std::string incremental(uint64_t sequence) const;
  std::string manifest() const { return name_ + ".manifest"; }
  // A manifest that is being written.
  std::string temporary_manifest() const { return "temp-" + name_ + ".manifest"; }
  // Commands that gather while the log is being switched on.
  std::string temporary_incremental() const { return "temp-" + name_ + ".incr"; }

 private:
  std::string name_;
};

// A base that is whole but not yet in place. It lies in the directory above the log's.
std::string aof_finished_rewrite_name(int64_t process_id);
// Of such a base, and of one that a Redis was writing.
bool is_aof_rewrite_name(std::string_view name);

// CRC-64 over a file from its first byte on. Copy it before a write that may fail, to go back.
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

// Opens a file of ours: the version line and a checksum line over it, so that a flipped bit
// cannot turn our file into a foreign one. REQUIRES: `checksum` is that of an empty file.
void append_aof_header(std::string& bytes, RunningChecksum& checksum);

// Ends a batch: takes `batch` into the checksum, appends the checksum line and takes that in too.
// REQUIRES: the file goes on with exactly `batch` where `checksum` ends.
void end_aof_batch(std::string& batch, RunningChecksum& checksum);

// `#TS:<unix seconds>` and line end, as aof-timestamp-enabled asks for.
void append_timestamp_line(std::string& bytes, int64_t unix_seconds);

// Without a line end: a manifest ends its lines with LF, the log itself with CR LF.
inline constexpr std::string_view kAofVersionText = "#bloomery-ver:1";
inline constexpr uint64_t kAofVersion = 1;
std::string checksum_text(uint64_t checksum);

struct AofAnnotation {
  enum class Kind : uint8_t {
    kOther,      // not of ours, or a comment
    kTimestamp,  // value: unix seconds
    kVersion,    // value: the version
    kChecksum,   // value: the checksum of the bytes before
    kMalformed,  // opens like a version or checksum line and goes on wrongly
  };
  Kind kind = Kind::kOther;
  uint64_t value = 0;
};

// `line` opens with '#' and comes without its line end.
AofAnnotation parse_annotation(std::string_view line);

// Where in `bytes` something begins that looks like a checksum line, its CR LF included. It need
// not stand where a command may start. Looks only at places that leave room for a whole line.
std::optional<size_t> find_checksum_line(std::string_view bytes);
inline constexpr size_t kChecksumLineBytes = 34;

// Longest annotation that is skipped, line end included.
inline constexpr size_t kAnnotationMaxBytes = 1023;

}  // namespace persistence
