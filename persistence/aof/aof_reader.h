// SPDX-License-Identifier: MIT
//
// Reads one file of the append log, in two passes. scan_aof() validates the whole file and
// determines its valid prefix. replay_aof() passes the commands of that prefix to a handler.
//
// Two passes are needed. A command must not be applied before the checksum that covers it has been
// verified, nor before the EXEC of its transaction has been read. One pass would have to buffer a
// batch, which may be the whole file. The second pass reads the bytes from the page cache, and
// verifies by the checksum that they have not changed.
//
// A file is torn if a crash can explain its fault. Its prefix of whole commands is valid. A file
// with any other fault is damaged and is not used at all. A file that ends inside a command or a
// transaction is torn. A file of another server is also torn if its first wrong byte belongs to
// zeros that reach the end of the file. A file of Bloomery is torn if no checksum line follows its
// first wrong byte, or if that byte lies in a hole. A hole consists of zero bytes up to the end of
// a block. It begins at the last checksum line or at the start of a block. A power cut leaves a
// hole if a block was not written yet but a later block was.
//
// Invariants: no command of a damaged file is replayed. The commands that replay_aof() passes on
// depend only on the bytes of the valid prefix. Reading a file needs the memory of one AofLexer.
// Thread safety: none; different files may be read in parallel.
// Source: docs/formats.md, "Append log".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "persistence/aof/aof_format.h"
#include "persistence/aof/aof_lexer.h"
#include "persistence/files/file_system.h"

namespace persistence {

// Reasons why a file is damaged, in addition to those of AofLexer.
namespace aof_fault {
inline constexpr std::string_view kNestedMulti = "MULTI inside of MULTI";
inline constexpr std::string_view kExecWithoutMulti = "EXEC without MULTI";
inline constexpr std::string_view kMalformedAnnotation = "a malformed annotation";
inline constexpr std::string_view kWrongChecksum =
    "the checksum of the preceding bytes does not match";
inline constexpr std::string_view kSwallowedChecksum = "a checksum line inside of a command";
}  // namespace aof_fault

struct AofScan {
  enum class Condition : uint8_t { kWhole, kTorn, kDamaged };
  Condition condition = Condition::kWhole;

  // True for files of Bloomery. Each add command in such a file lists only items that changed the
  // filter, so replay counts these items without looking them up.
  bool has_effect_semantics = false;

  uint64_t size_bytes = 0;
  // The size of the snapshot before the commands, in a file from before Redis 7.
  uint64_t preamble_bytes = 0;
  // The size of the valid prefix: the end of the last whole command or annotation outside an open
  // transaction. In a torn file the bytes after the prefix are cut off.
  uint64_t sound_bytes = 0;
  // The checksum of the valid prefix. An AofWriter that continues the file continues this checksum.
  RunningChecksum checksum;

  // The number of commands after the last checksum line of a file of Bloomery, included in
  // command_count. If it is not 0, a crash interrupted a write after these commands, or the
  // checksum line that followed them is damaged.
  uint64_t unverified_count = 0;

  // The fault and its offset if the file is torn or damaged.
  std::string reason;
  uint64_t fault_offset = 0;

  // The number of commands in the valid prefix, without MULTI and EXEC.
  uint64_t command_count = 0;
  uint64_t transaction_count = 0;
  uint64_t annotation_count = 0;
  uint64_t checksum_count = 0;
  // The position in a replication stream after the valid prefix; nullopt if a command follows the
  // last position line.
  std::optional<RdbReplicationInfo> position;

  bool begins_with_snapshot() const { return preamble_bytes > 0; }
};

// A file of a log, and the result of its scan.
struct ScannedAof {
  std::string path;
  bool is_base = false;
  AofScan scan;
};

struct AofCommand {
  // The arguments of a command, at least one. The views are valid until the handler returns.
  std::span<const std::string_view> arguments;
  uint64_t offset = 0;
};

using AofCommandHandler = std::function<core::Result<>(const AofCommand&)>;

// True if the file begins like a snapshot (REDIS or VALKEY).
core::Result<bool> begins_with_snapshot(FileSystem& files, const std::string& path);

// Scans the file, whose commands begin at `preamble_bytes`, the end of the snapshot. Errors:
// failures to read the file. Invalid bytes are not an error: AofScan reports them.
core::Result<AofScan> scan_aof(FileSystem& files, const std::string& path,
                               uint64_t preamble_bytes = 0);

// Passes the commands to the handler, except MULTI and EXEC. Errors: failures to read the file;
// those of the handler, with the offset; a file that changed after the scan. Such a change is
// detected at the end at the latest. After an error the applied commands must be discarded.
// REQUIRES: `scan` is not damaged.
core::Result<> replay_aof(FileSystem& files, const std::string& path, const AofScan& scan,
                          const AofCommandHandler& handler);

// Returns whether the torn tail of `files[index]` may be cut off. `files` are all files of a log in
// the order of loading. Only files without data may follow, because a rewrite creates the next file
// before it stops writing the old one. A crash can tear a base only if it is the only file, as in
// logs of older servers. A base with later files was complete before these were created.
bool may_be_cut(std::span<const ScannedAof> files, size_t index);

// Truncates the file at the end of its valid prefix and syncs it. REQUIRES: `scan` is torn.
core::Result<> cut_torn_tail(FileSystem& files, const std::string& path, const AofScan& scan);

// Returns the error for a torn or damaged file.
core::Error aof_error(const std::string& path, const AofScan& scan);

}  // namespace persistence
