// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_check.h"

#include <fmt/format.h>

#include <vector>

#include "core/printable.h"
#include "persistence/aof/aof_manifest.h"
#include "persistence/aof/aof_reader.h"
#include "persistence/files/input_file_source.h"
#include "persistence/rdb/rdb_reader.h"

namespace persistence {
namespace {

using Condition = AofScan::Condition;

// True if the first line that is not a comment begins like a manifest's. No other file of a log
// does.
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

class Discarding final : public RdbVisitor {
 public:
  core::Result<> entry(uint64_t /*database*/, core::keyspace::EntryPtr /*entry*/) override {
    return {};
  }
};

// Reads the snapshot at the beginning of the file to its end and returns its size.
core::Result<uint64_t> check_snapshot(FileSystem& files, const std::string& path) {
  auto file = files.open_input(path);
  if (!file) return file.error();
  InputFileSource source(**file);
  Discarding visitor;
  const core::UnlimitedMemory bounded_by_the_file;
  RdbReadOptions options;
  options.foreign_types = ForeignTypes::kSkip;
  options.may_be_followed = true;
  auto read = read_rdb(source, visitor, bounded_by_the_file, options);
  if (!read) return read.error();
  return read->total.bytes;
}

class Checker {
 public:
  Checker(FileSystem& files, bool fix) : files_(files), fix_(fix) {}

  AofCheckReport run(const std::string& path) {
    const auto done = check_any(path);
    if (!done) say("{}", done.error().message);
    report_.is_sound = done && is_sound_;
    if (fix_ && !has_cut_) {
      say("--fix changed nothing: {}",
          report_.is_sound ? "no end is torn" : "it cuts a torn end, and no other damage");
    }
    say("{}", report_.is_sound ? "The log is sound." : "The log is NOT sound.");
    return std::move(report_);
  }

 private:
  template <class... Arguments>
  void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    // File names may contain any bytes.
    report_.text += core::printable(fmt::format(format, std::forward<Arguments>(arguments)...));
    report_.text += '\n';
  }

  core::Result<> check_any(const std::string& path) {
    auto manifest = is_manifest(files_, path);
    if (!manifest) return manifest.error();
    auto checked = *manifest ? check_manifest(path) : check_file(path);
    if (!checked) return checked;
    return judge_torn_tails();
  }

  core::Result<> check_manifest(const std::string& path) {
    auto manifest = load_manifest(files_, path);
    if (!manifest) return manifest.error();
    say("{}: base {}, incremental files {}, history {}", path, manifest->base() ? 1 : 0,
        manifest->incrementals().size(), manifest->history().size());
    std::vector<AofFile> files;
    if (manifest->base()) files.push_back(*manifest->base());
    files.insert(files.end(), manifest->incrementals().begin(), manifest->incrementals().end());
    for (const AofFile& file : files) {
      const auto checked = check_file(directory_of(path) + "/" + file.name);
      // Continues with the other files even if one cannot be read.
      if (!checked) {
        is_sound_ = false;
        say("{}", checked.error().message);
      }
    }
    return {};
  }

  core::Result<> check_file(const std::string& path) {
    auto begins = begins_with_snapshot(files_, path);
    if (!begins) return begins.error();
    uint64_t preamble_bytes = 0;
    if (*begins) {
      auto size = check_snapshot(files_, path);
      if (!size) return core::Error{fmt::format("{}: {}", path, size.error().message)};
      preamble_bytes = *size;
    }
    auto scan = scan_aof(files_, path, preamble_bytes);
    if (!scan) return scan.error();
    describe(path, *scan);
    paths_.push_back(path);
    scans_.push_back(*scan);
    if (scan->condition == Condition::kWhole) return {};
    say("{}", aof_error(path, *scan).message);
    return {};
  }

  core::Result<> judge_torn_tails() {
    for (size_t i = 0; i < scans_.size(); ++i) {
      if (scans_[i].condition == Condition::kWhole) continue;
      if (!may_be_cut(scans_, i)) {
        is_sound_ = false;
      } else if (auto mended = mend(paths_[i], scans_[i]); !mended) {
        return mended;
      }
    }
    return {};
  }

  void describe(const std::string& path, const AofScan& scan) {
    if (scan.preamble_bytes > 0) say("{}: snapshot of {} bytes", path, scan.preamble_bytes);
    if (scan.preamble_bytes == scan.size_bytes && scan.size_bytes > 0) return;
    say("{}: {}, commands {}, transactions {}, annotations {} (checksums {}), sound bytes {} of {}",
        path, scan.has_effect_semantics ? "written by bloomery" : "without mark of bloomery",
        scan.command_count, scan.transaction_count, scan.annotation_count, scan.checksum_count,
        scan.sound_bytes, scan.size_bytes);
    if (scan.unverified_count == 0) return;
    say("{}: the last {} commands have no sound checksum line behind them", path,
        scan.unverified_count);
  }

  core::Result<> mend(const std::string& path, const AofScan& scan) {
    const uint64_t torn_bytes = scan.size_bytes - scan.sound_bytes;
    if (!fix_) {
      is_sound_ = false;
      say("{}: --fix would cut off the last {} bytes", path, torn_bytes);
      return {};
    }
    if (auto cut = cut_torn_tail(files_, path, scan); !cut) return cut;
    has_cut_ = true;
    say("{}: cut off the last {} bytes", path, torn_bytes);
    return {};
  }

  FileSystem& files_;
  const bool fix_;
  bool has_cut_ = false;
  AofCheckReport report_;
  // Paths of the files that could be read, in the order of loading.
  std::vector<std::string> paths_;
  std::vector<AofScan> scans_;
  bool is_sound_ = true;
};

}  // namespace

AofCheckReport check_aof(FileSystem& files, const std::string& path, bool fix) {
  return Checker(files, fix).run(path);
}

}  // namespace persistence
