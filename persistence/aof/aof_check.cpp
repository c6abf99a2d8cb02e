// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/printable.h"
#include "persistence/aof/aof_manifest.h"
#include "persistence/aof/aof_reader.h"
#include "persistence/aof/aof_times.h"
#include "persistence/rdb/rdb_reader.h"
#include "persistence/rdb/seen_keys.h"

namespace persistence {
namespace {

using Condition = AofScan::Condition;

// Returns whether the file is a manifest: its name ends with ".manifest", or its first line after
// the comments is that of a manifest. No other file of a log has such a line there.
core::Result<bool> is_manifest(FileSystem& files, const std::string& path) {
  if (path.ends_with(".manifest")) return true;
  constexpr size_t kBytesMax = 4096;
  const auto beginning = read_beginning(files, path, kBytesMax);
  if (!beginning) return beginning.error();
  std::string_view rest = *beginning;
  while (rest.starts_with('#')) rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  return rest.starts_with("file ");
}

class KeyChecker final : public RdbVisitor {
 public:
  core::Result<> entry(uint64_t database, core::keyspace::EntryPtr entry) override {
    return seen_.insert(database, entry->key());
  }

 private:
  SeenKeys seen_;
};

// Reads the whole snapshot at the beginning of the file, and returns the snapshot's size.
core::Result<uint64_t> check_snapshot(FileSystem& files, const std::string& path) {
  auto file = files.open_input(path);
  if (!file) return file.error();
  KeyChecker visitor;
  const core::UnlimitedMemory bounded_by_the_file;
  RdbReadOptions options;
  options.foreign_types = ForeignTypes::kSkip;
  options.may_be_followed = true;
  auto read = read_rdb(**file, visitor, bounded_by_the_file, options);
  if (!read) return read.error();
  return read->total.bytes;
}

class Checker {
 public:
  Checker(FileSystem& files, const AofRepair& repair)
      : files_(files),
        fix_(repair.cuts_torn_end || repair.keeps_until_s),
        keeps_until_s_(repair.keeps_until_s) {}

  AofCheckReport run(const std::string& path) {
    if (const auto done = check_any(path); !done) fail(done.error());
    if (report_.is_sound && keeps_until_s_) {
      if (const auto done = find_and_cut(); !done) {
        report_.has_cut_failed = true;
        say("{}", done.error().message);
      }
    }
    if (fix_ && !has_cut_ && !keeps_until_s_) {
      say("--fix changed nothing: {}",
          report_.is_sound ? "no end is torn" : "it cuts a torn end, and no other damage");
    }
    say("{}", verdict());
    return std::move(report_);
  }

 private:
  template <class... Arguments>
  void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    // The text is escaped, because file names may contain any bytes.
    report_.text += core::printable(fmt::format(format, std::forward<Arguments>(arguments)...));
    report_.text += '\n';
  }

  void fail(const core::Error& error) {
    report_.is_sound = false;
    say("{}", error.message);
  }

  std::string_view verdict() const {
    if (!report_.is_sound) return "The log is NOT sound.";
    if (report_.has_cut_failed) return "The log is sound, but it was not cut as requested.";
    return "The log is sound.";
  }

  core::Result<> check_any(const std::string& path) {
    auto manifest = is_manifest(files_, path);
    if (!manifest) return manifest.error();
    auto checked = *manifest ? check_manifest(path) : check_file(path);
    if (!checked) return checked;
    return validate_torn_tails();
  }

  core::Result<> check_manifest(const std::string& path) {
    auto manifest = load_manifest(files_, path);
    if (!manifest) return manifest.error();
    say("{}: base {}, incremental files {}, history {}", path, manifest->base() ? 1 : 0,
        manifest->incrementals().size(), manifest->history().size());
    const auto check = [&](const AofFile& file, bool is_base) {
      const auto checked = check_file(directory_of(path) + "/" + file.name, is_base);
      // If one file cannot be read, the other files are still checked.
      if (checked) return;
      fail(checked.error());
      has_unread_file_ = true;
    };
    if (manifest->base()) check(*manifest->base(), true);
    for (const AofFile& file : manifest->incrementals()) check(file, false);
    return {};
  }

  core::Result<> check_file(const std::string& path, bool is_base = false) {
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
    if (scan->condition != Condition::kWhole) say("{}", aof_error(path, *scan).message);
    scanned_.push_back({path, is_base, std::move(*scan)});
    return {};
  }

  core::Result<> validate_torn_tails() {
    for (size_t i = 0; i < scanned_.size(); ++i) {
      if (scanned_[i].scan.condition == Condition::kWhole) continue;
      // A file that could not be read may continue the log behind this one.
      if (has_unread_file_ || !may_be_cut(scanned_, i)) {
        report_.is_sound = false;
      } else if (auto mended = mend(scanned_[i].path, scanned_[i].scan); !mended) {
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
      report_.is_sound = false;
      say("{}: --fix would cut off the last {} bytes", path, torn_bytes);
      return {};
    }
    if (auto cut = cut_torn_tail(files_, path, scan); !cut) return cut;
    has_cut_ = true;
    say("{}: cut off the last {} bytes", path, torn_bytes);
    return {};
  }

  core::Result<> find_and_cut() {
    std::optional<uint64_t> first_s;
    std::optional<size_t> file;
    uint64_t kept_bytes = 0;
    for (size_t i = 0; i < scanned_.size() && !file; ++i) {
      auto times = read_aof_times(files_, scanned_[i].path, scanned_[i].scan, *keeps_until_s_);
      if (!times) return times.error();
      if (!first_s) first_s = times->first_s;
      if (!times->later_offset) continue;
      file = i;
      kept_bytes = *times->later_offset;
    }
    if (!first_s) {
      return core::Error{"The log has no #TS lines: it was written with aof-timestamp-enabled no"};
    }
    if (*first_s > *keeps_until_s_) {
      return core::Error{fmt::format(
          "The log begins at {}, after {}: its state of that time is in an older backup", *first_s,
          *keeps_until_s_)};
    }
    if (!file) {
      say("Nothing was cut: the log has no time after {}", *keeps_until_s_);
      return {};
    }
    return cut_from(*file, kept_bytes);
  }

  // The files are cut from the last one backwards, so that a crash leaves the beginning of the log
  // without a gap.
  core::Result<> cut_from(size_t first, uint64_t kept_bytes) {
    for (size_t i = scanned_.size(); i-- > first;) {
      const auto& [path, is_base, scan] = scanned_[i];
      const uint64_t size_bytes = i == first ? kept_bytes : 0;
      auto file = files_.open_append(path, OpenMode::kAppend);
      if (!file) return file.error();
      if (auto cut = (*file)->truncate(size_bytes); !cut) return cut;
      if (auto synced = (*file)->sync(); !synced) return synced;
      say("{}: cut off the last {} bytes, written after {}", path, scan.sound_bytes - size_bytes,
          *keeps_until_s_);
    }
    return {};
  }

  FileSystem& files_;
  const bool fix_;
  const std::optional<uint64_t> keeps_until_s_;
  bool has_cut_ = false;
  bool has_unread_file_ = false;
  AofCheckReport report_{.text = {}, .is_sound = true};
  // The files that could be read, in the order of loading.
  std::vector<ScannedAof> scanned_;
};

}  // namespace

AofCheckReport check_aof(FileSystem& files, const std::string& path, const AofRepair& repair) {
  return Checker(files, repair).run(path);
}

}  // namespace persistence
