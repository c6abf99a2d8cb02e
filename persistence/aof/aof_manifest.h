// SPDX-License-Identifier: MIT
//
// AofManifest: the index of an append log: which files it has and in which order.
//
// A manifest of Bloomery begins with a version line and ends with a checksum line, which other
// servers treat as comments. A manifest without these lines was written by Redis or Valkey and is
// read by their rules.
//
// Invariants: sequence numbers are positive, and those of the incremental files increase strictly.
// File names are names, not paths. parse(encode()) returns an equal value. Truncated manifests of
// Bloomery are rejected.
// Thread safety: one thread at a time may use an object.
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

// Reasons why a manifest is damaged. Texts that begin with a capital letter are those of Redis.
namespace manifest_fault {
inline constexpr std::string_view kEmpty = "Found an empty AOF manifest";
inline constexpr std::string_view kLongLine = "The AOF manifest file contains too long line";
inline constexpr std::string_view kNoLineEnd = "the line has no end";
inline constexpr std::string_view kNotPairs = "not a list of names and values";
inline constexpr std::string_view kNoFileName = "file is not the name of a file";
inline constexpr std::string_view kNoSequence = "seq is not a positive number";
inline constexpr std::string_view kMissingField = "file, seq or type is missing";
inline constexpr std::string_view kUnknownType = "Unknown AOF file type";
inline constexpr std::string_view kSecondBase = "Found duplicate base file information";
inline constexpr std::string_view kWrongOrder = "Found a non-monotonic sequence number";
inline constexpr std::string_view kMalformedLine = "malformed line of ours";
inline constexpr std::string_view kTextAfterChecksum = "text after the checksum";
}  // namespace manifest_fault

struct AofFile {
  std::string name;
  uint64_t sequence = 0;
  bool operator==(const AofFile&) const = default;
};

class AofManifest {
 public:
  AofManifest() = default;
  // Returns the manifest for a log that was a single file before.
  static AofManifest of_single_file(std::string name);

  // Parses the manifest. An error names the line and its fault. `path` is used in messages only.
  static core::Result<AofManifest> parse(std::string_view text, const std::string& path);
  std::string encode() const;

  const std::optional<AofFile>& base() const { return base_; }
  const std::vector<AofFile>& incrementals() const { return incrementals_; }
  // Returns the files that are no longer needed and will be removed from the disk.
  const std::vector<AofFile>& history() const { return history_; }
  bool names_data() const { return base_ || !incrementals_.empty(); }
  bool lists(std::string_view name) const;

  // add_incremental(), replace_base() and replace_all() return the new file's entry. The caller
  // creates the file first, then saves the manifest.
  const AofFile& add_incremental(const AofNames& names);
  // Adds a new base. The old base and all incremental files except the last one become history.
  const AofFile& replace_base(const AofNames& names, AofBaseFormat format);
  // Does the same as replace_base() for a log that is not open: the last incremental file becomes
  // history too.
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

struct AofPlace {
  std::string directory;  // directory of the manifest and of the files that it names
  AofNames names;

  std::string path_of(const std::string& name) const { return directory + "/" + name; }
};

// Returns whether a manifest may list this file name. The name must contain no path, and its
// escaped form must fit in a line of the manifest.
bool is_manifest_name(const std::string& name);

// load_manifest() and save_manifest() read and write the manifest.
core::Result<AofManifest> load_manifest(FileSystem& files, const std::string& path);
core::Result<> save_manifest(FileSystem& files, const AofPlace& place, const AofManifest& manifest);

}  // namespace persistence
