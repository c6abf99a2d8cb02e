// SPDX-License-Identifier: MIT
//
// AofDirectory: finds an append log at the start of the server and clears what a crash left.
//
// A log is a manifest and the files it names, in a directory of their own. A single file in the
// directory above it is a log of before Redis 7: it is taken in as the base.
//
// Invariants: whenever the power goes, the next start finds the same data. Nothing is removed that
// the manifest names as data.
// Thread safety: none; one server per directory.
// Source: docs/formats.md, "Append log"; the start of Redis 7.0.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "persistence/aof/aof_format.h"
#include "persistence/aof/aof_manifest.h"
#include "persistence/files/file_system.h"

namespace persistence {

// What AofDirectory::find() found. Without files the data set is empty.
struct AofStart {
  struct File {
    std::string path;
    bool is_base = false;
    // Nothing follows it.
    bool is_last = false;
  };

  AofManifest manifest;
  // In the order of loading.
  std::vector<File> files;
  bool took_in_single_file = false;
};

class AofDirectory {
 public:
  // `directory` is the server's, `log_directory` the name of the log's own one below it.
  AofDirectory(FileSystem& files, std::string directory, const std::string& log_directory,
               AofNames names);

  const AofNames& names() const { return names_; }
  // Where the manifest and what it names lie.
  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  // Errors: a manifest that is damaged or missing, a file that it names and that is not there.
  core::Result<AofStart> find();

  // Puts a new base in place of all files. REQUIRES: the log is not open.
  core::Result<> replace_files(const std::string& new_base_path, AofBaseFormat format);

  // Told of each file that sweep() has removed.
  std::function<void(const std::string& path)> on_removed = [](const auto&) {};
  // Removes what is being written when a server dies, and what the manifest calls history.
  core::Result<> sweep(AofManifest& manifest);

 private:
  core::Result<AofManifest> load_manifest_if_there();
  bool is_to_be_taken_in(const AofManifest& manifest);
  core::Result<> take_in_single_file(const AofManifest& manifest);
  core::Result<> refuse_log_without_manifest();
  core::Result<> remove_temporaries(const std::string& directory, const AofManifest& manifest);

  FileSystem& files_;
  const std::string directory_;
  const std::string path_;
  const AofNames names_;
};

}  // namespace persistence
