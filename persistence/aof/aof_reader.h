// SPDX-License-Identifier: MIT
//
// Reads one file of the append log, in two passes: scan_aof() judges all of it and says where its
// sound part ends, replay_aof() hands the commands of that part out.
//
// Two passes, because no command may be handed out before the checksum that covers it was seen,
// nor one of a transaction before its EXEC: one pass would have to keep a batch, which may be the
// whole file. The second pass finds the bytes in the page cache, and proves by the checksum that
// they are the same ones.
//
// A file that ends too early is torn: a crash may do that, and its sound part is good. A file with
// a wrong byte anywhere else is damaged, and none of it is used. For files of ours, checksum lines
// tell the two apart: behind a torn place no such line follows. One exception: a hole, bytes of
// zero from the last checksum line or a block's start up to a block's end, is what a power cut
// leaves of a block that was not yet written while a later one was.
//
// Invariants: a damaged file yields no command. What replay_aof() hands out depends on the sound
// part's bytes only. Memory: see AofLexer.
// Thread safety: none; different files may be read side by side.
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

struct AofScan {
  enum class Condition : uint8_t { kWhole, kTorn, kDamaged };
  Condition condition = Condition::kWhole;

  // The file is ours: each journalled add was new when it was made, so replay counts it unasked.
  bool has_effect_semantics = false;

  uint64_t size_bytes = 0;
  // Snapshot in front of the commands, in a file of before Redis 7.
  uint64_t preamble_bytes = 0;
  // Up to the end of the last whole command or annotation outside an open transaction. When torn,
  // the rest is to be cut off.
  uint64_t sound_bytes = 0;
  // Of the sound part: an AOF writer that goes on there takes it over.
  RunningChecksum checksum;

  // Of command_count: behind the last checksum line of a file of ours. A write is torn there, or
  // that line is damaged.
  uint64_t unverified_count = 0;

  // When torn or damaged: what is wrong, and at which byte.
  std::string reason;
  uint64_t fault_offset = 0;

  // In the sound part. MULTI and EXEC are not counted as commands.
  uint64_t command_count = 0;
  uint64_t transaction_count = 0;
  uint64_t annotation_count = 0;
  uint64_t checksum_count = 0;
  std::optional<uint64_t> last_timestamp_s;
};

struct AofCommand {
  // At least one; the views live until the handler returns.
  std::span<const std::string_view> arguments;
  uint64_t offset = 0;
  // Between MULTI and EXEC, which are not handed out themselves.
  bool in_transaction = false;
};

using AofCommandHandler = std::function<core::Result<>(const AofCommand&)>;

// True when the file begins as a snapshot does (REDIS or VALKEY).
core::Result<bool> begins_with_snapshot(FileSystem& files, const std::string& path);

// Errors: only what hinders reading; what is wrong with the bytes is in the AofScan. The commands
// begin at `preamble_bytes`, where the snapshot's reader found the snapshot's end.
core::Result<AofScan> scan_aof(FileSystem& files, const std::string& path,
                               uint64_t preamble_bytes = 0, const AofLimits& limits = {});

// Errors: the handler's, with the place; also when the file is not the one that was scanned, which
// shows at the end. Then what was handed out must not be used.
// REQUIRES: `scan` is not damaged.
core::Result<> replay_aof(FileSystem& files, const std::string& path, const AofScan& scan,
                          const AofCommandHandler& handler, const AofLimits& limits = {});

// Whether the torn tail of `scans[index]` may be cut off, `scans` being those of all files of a log
// in the order of loading. Only in front of files without commands: a rewrite makes the next file
// before it leaves the old one.
bool may_be_cut(std::span<const AofScan> scans, size_t index);

// Cuts the file at the end of its sound part and syncs it. REQUIRES: `scan` is torn.
core::Result<> cut_torn_tail(FileSystem& files, const std::string& path, const AofScan& scan);

// Why a torn or damaged file is refused.
core::Error aof_error(const std::string& path, const AofScan& scan);

}  // namespace persistence
