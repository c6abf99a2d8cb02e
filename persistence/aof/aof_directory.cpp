// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_directory.h"

#include <fmt/format.h>

#include "persistence/aof/aof_reader.h"
#include "persistence/files/posix_io.h"

namespace persistence {

AofDirectory::AofDirectory(FileSystem& files, std::string directory,
                           const std::string& log_directory, AofNames names)
    : place{directory + "/" + log_directory, std::move(names)},
      files_(files),
      directory_(std::move(directory)) {}

core::Result<AofStart> AofDirectory::find() {
  const std::string manifest_path = place.path_of(place.names.manifest());
  AofStart start;
  if (files_.exists(manifest_path)) {
    auto manifest = load_manifest(files_, manifest_path);
    if (!manifest) return manifest.error();
    start.manifest = std::move(*manifest);
  }
  if (is_to_be_taken_in(start.manifest)) {
    start.manifest = AofManifest::of_single_file(place.names.name());
    start.took_in_single_file = true;
    if (auto taken = take_in_single_file(start.manifest); !taken) return taken.error();
  }
  if (!files_.exists(manifest_path)) {
    if (auto checked = refuse_log_without_manifest(); !checked) return checked.error();
  }
  const auto add = [&](const AofFile& file, bool is_base) {
    start.files.push_back({.path = place.path_of(file.name), .is_base = is_base});
  };
  if (start.manifest.base()) add(*start.manifest.base(), true);
  for (const AofFile& file : start.manifest.incrementals()) add(file, false);
  if (!start.files.empty()) start.files.back().is_last = true;
  for (const AofStart::File& file : start.files) {
    if (!files_.exists(file.path)) {
      return core::Error{
          fmt::format("ERR append log {} is missing: No such file or directory. '{}' names it",
                      printable_path(file.path), printable_path(manifest_path))};
    }
  }
  return start;
}

bool AofDirectory::is_to_be_taken_in(const AofManifest& manifest) {
  if (!files_.exists(directory_ + "/" + place.names.name())) return false;
  if (!manifest.names_data()) return true;
  // An earlier server start wrote the manifest and was interrupted before it moved the single file
  // of the old log into the log's directory.
  return manifest.incrementals().empty() && manifest.base()->name == place.names.name() &&
         !files_.exists(place.path_of(place.names.name()));
}

core::Result<> AofDirectory::take_in_single_file(const AofManifest& manifest) {
  if (auto made = files_.make_directory(place.directory); !made) return made;
  if (auto synced = files_.sync_directory(directory_); !synced) return synced;
  // The manifest is saved before the file is moved, so that the next start completes an interrupted
  // move.
  if (auto saved = save_manifest(files_, place, manifest); !saved) return saved;
  const std::string& name = place.names.name();
  auto moved = files_.rename(directory_ + "/" + name, place.path_of(name));
  if (!moved) return moved;
  if (auto synced = files_.sync_directory(place.directory); !synced) return synced;
  return files_.sync_directory(directory_);
}

// The manifest is on the disk before the first command, so commands without a manifest mean that
// the manifest was lost. Starting empty, as Redis does, would overwrite them.
core::Result<> AofDirectory::refuse_log_without_manifest() {
  auto listed = files_.list(place.directory);
  if (!listed) return listed.error();
  for (const std::string& name : *listed) {
    if (!name.starts_with(place.names.name() + ".") || !name.ends_with(".incr.aof")) continue;
    auto scan = scan_aof(files_, place.path_of(name));
    if (!scan) return scan.error();
    if (scan->command_count == 0 && scan->condition != AofScan::Condition::kDamaged) continue;
    return core::Error{
        fmt::format("ERR append log '{}' holds commands but '{}' does not name it: put the "
                    "manifest back, or move the file away to start without its data",
                    printable_path(place.path_of(name)),
                    printable_path(place.path_of(place.names.manifest())))};
  }
  return {};
}

core::Result<> AofDirectory::replace_files(const std::string& new_base_path, AofBaseFormat format) {
  auto start = find();
  if (!start) return start.error();
  if (auto made = files_.make_directory(place.directory); !made) return made;
  if (auto synced = files_.sync_directory(directory_); !synced) return synced;
  const std::string name = start->manifest.replace_all(place.names, format).name;
  if (auto renamed = files_.rename(new_base_path, place.path_of(name)); !renamed) return renamed;
  if (auto saved = save_manifest(files_, place, start->manifest); !saved) return saved;
  return sweep(start->manifest);
}

core::Result<> AofDirectory::sweep(AofManifest& manifest) {
  for (const std::string& directory : {directory_, place.directory}) {
    if (auto removed = remove_temporaries(directory, manifest); !removed) return removed;
  }
  if (manifest.history().empty()) return {};
  AofManifest without = manifest;
  without.drop_history();
  for (const AofFile& file : manifest.history()) {
    if (without.lists(file.name)) continue;
    if (!files_.exists(place.path_of(file.name))) continue;
    if (auto removed = files_.remove(place.path_of(file.name)); !removed) return removed;
    on_removed(place.path_of(file.name));
  }
  if (auto saved = save_manifest(files_, place, without); !saved) return saved;
  manifest = std::move(without);
  return {};
}

core::Result<> AofDirectory::remove_temporaries(const std::string& directory,
                                                const AofManifest& manifest) {
  auto listed = files_.list(directory);
  if (!listed) return listed.error();
  for (const std::string& name : *listed) {
    const bool is_temporary =
        is_aof_rewrite_name(name) ||
        (directory == place.directory &&
         (name == place.names.temporary_manifest() || name == place.names.temporary_incremental()));
    // appendfilename may be any word, even one that looks like a temporary name of Bloomery. So a
    // file that the log uses is kept even if it has such a name.
    if (!is_temporary || name == place.names.name() || manifest.lists(name)) continue;
    const std::string path = fmt::format("{}/{}", directory, name);
    if (auto removed = files_.remove(path); !removed) return removed;
    on_removed(path);
  }
  return {};
}

}  // namespace persistence
