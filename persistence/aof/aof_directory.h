// SPDX-License-Identifier: MIT
//
// AofDirectory: finds the append log when the server starts, and removes files that a crash left.
//
// A log is a manifest and the files it names, in a separate directory. A single file in the parent
// directory is a log from before Redis 7: it becomes the base.
//
// Invariants: if a power cut interrupts an operation on the files, the next start finds the same
// data as without the operation. A file that the manifest names as data is never removed.
// Thread safety: one thread at a time may use an object, and only one server may use a directory.
// Source: docs/formats.md, "Append log"; the way Redis 7.0 loads its append log.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "persistence/aof/aof_format.h"
#include "persistence/aof/aof_manifest.h"
#include "persistence/files/file_system.h"

namespace persistence {

// AofStart: the result of AofDirectory::find(). Without files the data set is empty.
struct AofStart {
  struct File {
    std::string path;
    bool is_base = false;
    // True for the last file of the log.
    bool is_last = false;
  };

  AofManifest manifest;
  // The files of the log in the order of loading.
  std::vector<File> files;
  bool took_in_single_file = false;
};

class AofDirectory {
 public:
  // `directory` is the server's data directory, `log_directory` the name of the log's subdirectory.
  AofDirectory(FileSystem& files, std::string directory, const std::string& log_directory,
               AofNames names);

  // The place of the manifest and of the files that it names.
  const AofPlace place;

  // Finds the files of the log. Moves the single file of a log from before Redis 7 into the log's
  // directory. Errors: those of the file operations; a damaged or missing manifest; a missing file
  // that the manifest names.
  core::Result<AofStart> find();

  // Replaces all files by a new base. REQUIRES: the log is not open.
  core::Result<> replace_files(const std::string& new_base_path, AofBaseFormat format);

  // Called for each file that sweep() has removed.
  std::function<void(const std::string& path)> on_removed = [](const auto&) {};
  // Removes files that a crashed server was writing, and files that the manifest calls history.
  core::Result<> sweep(AofManifest& manifest);

 private:
  bool is_to_be_taken_in(const AofManifest& manifest);
  core::Result<> take_in_single_file(const AofManifest& manifest);
  core::Result<> refuse_log_without_manifest();
  core::Result<> remove_temporaries(const std::string& directory, const AofManifest& manifest);

  FileSystem& files_;
  const std::string directory_;
};

}  // namespace persistence
