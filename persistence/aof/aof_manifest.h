// SPDX-License-Identifier: MIT
//
// AofManifest: the index of an append log, which says what files it has and in which order.
//
// A manifest of ours opens with a version line and ends with a checksum line, comments to others;
// one without them was written by Redis or Valkey and is read by their rules.
//
// Invariants: sequence numbers are positive, those of the incremental files grow strictly; names
// are names, not paths. parse(encode()) yields an equal value. Of a manifest of ours no part but
// the whole is accepted.
// Thread safety: a value.
// Source: docs/formats.md, "Append log"; the rules of Redis 7.0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "persistence/aof/aof_format.h"
#include "persistence/files/file_system.h"

namespace persistence {

struct AofFile {
  std::string name;
  uint64_t sequence = 0;
  bool operator==(const AofFile&) const = default;
};

class AofManifest {
 public:
  AofManifest() = default;
  // The manifest of a log that was one file so far.
  static AofManifest of_single_file(std::string name);

  // Errors: what is wrong in which line; `path` is used in messages only.
  static core::Result<AofManifest> parse(std::string_view text, const std::string& path);
  std::string encode() const;

  const std::optional<AofFile>& base() const { return base_; }
  const std::vector<AofFile>& incrementals() const { return incrementals_; }
  // No longer needed, to be removed from the disk.
  const std::vector<AofFile>& history() const { return history_; }
  bool names_data() const { return base_ || !incrementals_.empty(); }
  bool lists(std::string_view name) const;

  // Each returns the new file's entry. The caller makes the file first, then saves the manifest.
  const AofFile& add_incremental(const AofNames& names);
  // The old base and all incremental files but the last one become history.
  const AofFile& replace_base(const AofNames& names, AofBaseFormat format);
  // The same for a log that is not open: the last incremental file does too.
  const AofFile& replace_all(const AofNames& names, AofBaseFormat format);
  void drop_history() { history_.clear(); }
  void drop_from_history(std::string_view name) {
    std::erase_if(history_, [name](const AofFile& file) { return file.name == name; });
  }

  bool operator==(const AofManifest&) const = default;

 private:
  core::Result<> add(char type, AofFile file, const std::string& place);

  std::optional<AofFile> base_;
  std::vector<AofFile> history_;
  std::vector<AofFile> incrementals_;
};

// REQUIRES: `directory` is where the log's files lie.
core::Result<AofManifest> load_manifest(FileSystem& files, const std::string& path);
core::Result<> save_manifest(FileSystem& files, const std::string& directory, const AofNames& names,
                             const AofManifest& manifest);

}  // namespace persistence
