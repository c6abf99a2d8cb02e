// SPDX-License-Identifier: MIT
#include "persistence/aof_check.h"

#include <fmt/format.h>

#include "persistence/aof_manifest.h"
#include "persistence/aof_reader.h"

namespace persistence {
namespace {

using Condition = AofScan::Condition;

// A manifest's first line that is no comment begins so; no other file of a log does.
core::Result<bool> is_manifest(FileSystem& files, const std::string& path) {
  if (path.ends_with(".manifest")) return true;
  auto file = files.open_input(path);
  if (!file) return file.error();
  std::string beginning(4096, '\0');
  auto got = (*file)->read(beginning);
  if (!got) return got.error();
  beginning.resize(*got);
  std::string_view rest = beginning;
  while (rest.starts_with('#')) rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  return rest.starts_with("file ");
}

class Checker {
 public:
  Checker(FileSystem& files, const AofCheckOptions& options) : files_(files), options_(options) {}

  AofCheckReport run(const std::string& path) {
    const auto done = check_any(path);
    if (!done) say("{}", done.error().message);
    report_.is_sound = done && is_sound_;
    say("{}", report_.is_sound ? "The log is sound." : "The log is NOT sound.");
    return std::move(report_);
  }

 private:
  template <class... Arguments>
  void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    report_.text += fmt::format(format, std::forward<Arguments>(arguments)...) + '\n';
  }

  core::Result<> check_any(const std::string& path) {
    auto manifest = is_manifest(files_, path);
    if (!manifest) return manifest.error();
    return *manifest ? check_manifest(path) : check_file(path, true);
  }

  core::Result<> check_manifest(const std::string& path) {
    auto manifest = load_manifest(files_, path);
    if (!manifest) return manifest.error();
    say("{}: base {}, incremental files {}, history {}", path, manifest->base() ? 1 : 0,
        manifest->incrementals().size(), manifest->history().size());
    std::vector<AofFile> files;
    if (manifest->base()) files.push_back(*manifest->base());
    files.insert(files.end(), manifest->incrementals().begin(), manifest->incrementals().end());
    for (size_t i = 0; i < files.size(); ++i) {
      const bool is_last = i + 1 == files.size();
      const auto checked = check_file(directory_of(path) + "/" + files[i].name, is_last);
      // The other files are worth a look even when one cannot be read.
      if (!checked) {
        is_sound_ = false;
        say("{}", checked.error().message);
      }
    }
    return {};
  }

  core::Result<> check_file(const std::string& path, bool is_last) {
    auto begins = begins_with_snapshot(files_, path);
    if (!begins) return begins.error();
    uint64_t preamble_bytes = 0;
    if (*begins) {
      auto size = options_.check_snapshot(path);
      if (!size) return core::Error{fmt::format("{}: {}", path, size.error().message)};
      preamble_bytes = *size;
    }
    auto scan = scan_aof(files_, path, preamble_bytes);
    if (!scan) return scan.error();
    describe(path, *scan);
    if (scan->condition == Condition::kWhole) return {};
    say("{}", aof_error(path, *scan).message);
    if (scan->condition == Condition::kTorn && is_last) return mend(path, *scan);
    is_sound_ = false;
    return {};
  }

  void describe(const std::string& path, const AofScan& scan) {
    if (scan.preamble_bytes > 0) say("{}: snapshot of {} bytes", path, scan.preamble_bytes);
    if (scan.preamble_bytes == scan.size_bytes && scan.size_bytes > 0) return;
    say("{}: {}, commands {}, transactions {}, annotations {} (checksums {}), sound bytes {} of {}",
        path, scan.has_effect_semantics ? "written by bloomery" : "without mark of bloomery",
        scan.command_count, scan.transaction_count, scan.annotation_count, scan.checksum_count,
        scan.sound_bytes, scan.size_bytes);
  }

  core::Result<> mend(const std::string& path, const AofScan& scan) {
    const uint64_t torn_bytes = scan.size_bytes - scan.sound_bytes;
    if (!options_.fix) {
      is_sound_ = false;
      say("{}: --fix would cut off the last {} bytes", path, torn_bytes);
      return {};
    }
    if (auto cut = cut_torn_tail(files_, path, scan); !cut) return cut;
    say("{}: cut off the last {} bytes", path, torn_bytes);
    return {};
  }

  FileSystem& files_;
  const AofCheckOptions& options_;
  AofCheckReport report_;
  bool is_sound_ = true;
};

}  // namespace

AofCheckReport check_aof(FileSystem& files, const std::string& path,
                         const AofCheckOptions& options) {
  return Checker(files, options).run(path);
}

}  // namespace persistence
