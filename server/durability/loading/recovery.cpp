// SPDX-License-Identifier: MIT
#include "server/durability/loading/recovery.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "core/memory/memory_budget.h"
#include "core/number.h"
#include "core/printable.h"
#include "persistence/aof/aof_directory.h"
#include "persistence/aof/aof_reader.h"
#include "persistence/files/file_system.h"
#include "persistence/files/posix_io.h"
#include "persistence/rdb/rdb_format.h"
#include "persistence/rdb/rdb_loader.h"
#include "persistence/rdb/rdb_reader.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/metrics/work_report.h"
#include "server/durability/data/key_delay.h"
#include "server/durability/loading/load_figures.h"
#include "server/session/replayed_error.h"

namespace server {
namespace {

using persistence::AofCommand;
using persistence::AofScan;
using persistence::AofStart;
using persistence::ScannedAof;

constexpr std::string_view kCancelled = "loading was cancelled";
constexpr std::string_view kGivenUp = "loading was given up for another role";

class CancellableLoader final : public persistence::KeyspaceLoader {
 public:
  CancellableLoader(const RecoveryParts& parts, int64_t now_ms, uint32_t access_clock_s)
      : KeyspaceLoader(parts.keyspace, now_ms, access_clock_s), parts_(parts) {}

  core::Result<> entry(uint64_t database, core::keyspace::EntryPtr entry) override {
    if (parts_.is_cancelled) return core::Error{std::string(kCancelled)};
    if (parts_.is_wanted && !parts_.is_wanted()) return core::Error{std::string(kGivenUp)};
    // The option key-load-delay is read again for each key, so that a test can set the delay to
    // zero while the server loads.
    delay_for_key(key_delay(parts_.config, OptionId::kKeyLoadDelay));
    return KeyspaceLoader::entry(database, std::move(entry));
  }
  // Reads AUX fields. If the file has a stream position from which a replica continues, the replica
  // keeps expired keys until the stream deletes them.
  core::Result<> aux(std::string_view name, std::string_view value) override {
    if (name == persistence::rdb::kReplicationIdAux) keep_expired();
    return KeyspaceLoader::aux(name, value);
  }

 private:
  const RecoveryParts& parts_;
};

// Returns the snapshot's position in a replication stream, if its AUX fields are complete.
std::optional<persistence::RdbReplicationInfo> position_in(
    const std::map<std::string, std::string, std::less<>>& aux) {
  const auto id = aux.find(persistence::rdb::kReplicationIdAux);
  const auto offset = aux.find(persistence::rdb::kReplicationOffsetAux);
  const auto database = aux.find(persistence::rdb::kStreamDatabaseAux);
  if (id == aux.end() || offset == aux.end() || database == aux.end()) return std::nullopt;
  const auto offset_value = core::parse_int64(offset->second);
  const auto database_value = core::parse_int64(database->second);
  if (!offset_value || !database_value) return std::nullopt;
  const bool is_ours = aux.contains(persistence::rdb::kBloomeryVersionAux);
  return persistence::RdbReplicationInfo{
      *database_value, id->second, *offset_value,
      !is_ours || aux.contains(persistence::rdb::kForeignStreamAux),
      aux.contains(persistence::rdb::kAheadAux)};
}

class Recovery {
 public:
  explicit Recovery(const RecoveryParts& parts) : parts_(parts), report_("Loading", parts.clock) {}

  core::Result<Recovered> run() {
    parts_.figures.begin(parts_.clock.monotonic_us());
    const std::string snapshot = parts_.config.text(OptionId::kDbFileName);
    if (!parts_.config.flag(OptionId::kAppendOnly))
      return run_snapshot(snapshot, expiry_limit_ms());
    auto start = parts_.log_directory.find();
    if (!start) return start.error();
    if (start->took_in_single_file) {
      log_notice("Took in the append log of an earlier kind, one file, as the base of a new one");
    }
    if (start->files.empty() && !start->manifest.names_data()) {
      // If `appendonly` is yes but there is no append log, Redis starts without data. Bloomery
      // loads the snapshot, because a user who moves from Redis expects the snapshot's data.
      auto recovered = run_snapshot(snapshot, expiry_limit_ms());
      if (recovered) recovered->manifest = std::move(start->manifest);
      return recovered;
    }
    return run_log(*start);
  }

  core::Result<Recovered> run_snapshot(const std::string& path, int64_t now_ms) {
    Recovered recovered;
    if (!parts_.files.exists(path)) return recovered;
    const auto size = parts_.files.size_bytes(path);
    if (!size) return size.error();
    parts_.figures.total_bytes = *size;
    if (auto loaded = load_snapshot(path, now_ms, false); !loaded) return loaded.error();
    recovered.needs_base = true;
    // If a leader has skipped keys of unsupported types while loading, its data differ from those
    // of its replicas. So the loaded data have no stream position, and the replicas need a full
    // sync.
    if (is_replica() || parts_.figures.foreign_keys == 0) recovered.position = position_;
    report_loaded("snapshot");
    return recovered;
  }

  // On a replica, no key expires while loading, because the leader deletes expired keys.
  int64_t expiry_limit_ms() const {
    return is_replica() ? core::keyspace::kIgnoreExpiry : parts_.clock.wall_ms();
  }
  bool is_replica() const { return !parts_.config.text(OptionId::kReplicaOf).empty(); }

 private:
  core::Result<Recovered> run_log(const AofStart& start) {
    std::vector<ScannedAof> files;
    for (const AofStart::File& file : start.files) {
      auto scanned = scan_file(file);
      if (!scanned) return scanned.error();
      files.push_back(std::move(*scanned));
    }
    for (size_t i = 0; i < files.size(); ++i) {
      if (auto checked = check_condition(files, i); !checked) return checked.error();
    }
    for (size_t i = 0; i < files.size(); ++i) {
      if (auto loaded = load(files, i); !loaded) return loaded.error();
    }
    report_loaded("append log");
    return finish(start, files);
  }

  core::Result<ScannedAof> scan_file(const AofStart::File& file) {
    ScannedAof scanned{file.path, file.is_base, {}};
    const auto size = parts_.files.size_bytes(file.path);
    if (!size) return size.error();
    parts_.figures.total_bytes += *size;
    auto snapshot = persistence::begins_with_snapshot(parts_.files, file.path);
    if (!snapshot) return snapshot.error();
    if (*snapshot) {
      // In files of older servers, commands may follow a snapshot in the same file. load() scans
      // these commands after the snapshot, and until then the snapshot counts as the whole file.
      scanned.scan.size_bytes = *size;
      scanned.scan.preamble_bytes = *size;
      scanned.scan.sound_bytes = *size;
      return scanned;
    }
    auto scan = persistence::scan_aof(parts_.files, file.path);
    if (!scan) return scan.error();
    if (scan->condition == AofScan::Condition::kDamaged) return refused(file.path, *scan);
    scanned.scan = std::move(*scan);
    return scanned;
  }

  // Errors: the file is damaged, or it is torn and must not be cut.
  core::Result<> check_condition(std::span<const ScannedAof> files, size_t index) const {
    const auto& [path, is_base, scan] = files[index];
    if (scan.condition == AofScan::Condition::kWhole) return {};
    const bool is_cut =
        parts_.config.flag(OptionId::kAofLoadTruncated) && persistence::may_be_cut(files, index);
    return is_cut ? core::Result<>{} : refused(path, scan);
  }

  // Adds the file's name to the error. If the file is damaged, also adds advice for the operator.
  static core::Error refused_snapshot(const std::string& path, const core::Error& error) {
    const std::string shown = persistence::printable_path(path);
    if (error.code != core::ErrorCode::kDamaged) {
      return {fmt::format("'{}': {}", shown, error.message)};
    }
    return {fmt::format(
        "'{}': {}. Next: `bloomery-server --check-rdb {}` says what can be read. The keys come "
        "from a replica (start empty with --replicaof) or a backup of the file",
        shown, error.message, shown)};
  }

  core::Error refused(const std::string& path, const AofScan& scan) const {
    const persistence::AofPlace& place = parts_.log_directory.place;
    return {fmt::format(
        "{}. Next: `bloomery-server --check-aof {}` checks every file; --fix cuts a torn end. "
        "Damaged data come from a replica (start empty with --replicaof) or a backup of '{}'",
        persistence::aof_error(path, scan).message,
        persistence::printable_path(place.path_of(place.names.manifest())),
        persistence::printable_path(place.directory))};
  }

  core::Result<> load(std::span<ScannedAof> files, size_t index) {
    auto& [path, is_base, scan] = files[index];
    log_notice("Loading {}", path);
    if (scan.begins_with_snapshot()) {
      const auto read = load_snapshot(path, core::keyspace::kIgnoreExpiry, true);
      if (!read) return read.error();
      if (*read == scan.size_bytes) return {};
      auto rest = persistence::scan_aof(parts_.files, path, *read);
      if (!rest) return rest.error();
      scan = std::move(*rest);
      if (auto checked = check_condition(files, index); !checked) return checked;
      position_.reset();
    }
    if (auto replayed = replay(path, scan); !replayed) return replayed;
    if (scan.condition != AofScan::Condition::kTorn) {
      if (scan.unverified_count > 0) {
        log_warning(
            "{}: no sound checksum line follows its last {} commands; they are whole and "
            "were loaded",
            path, scan.unverified_count);
      }
      return {};
    }
    log_warning("{} is torn: {}; its last {} bytes are cut off at offset {}", path, scan.reason,
                scan.size_bytes - scan.sound_bytes, scan.sound_bytes);
    return persistence::cut_torn_tail(parts_.files, path, scan);
  }

  core::Result<> replay(const std::string& path, const AofScan& scan) {
    const auto origin =
        scan.has_effect_semantics ? CommandOrigin::kOwnJournal : CommandOrigin::kForeignJournal;
    const auto replayer = parts_.make_replayer(origin);
    uint64_t refused = 0;
    const uint64_t bytes_before = parts_.figures.loaded_bytes;
    const auto execute = [&](const AofCommand& command) -> core::Result<> {
      parts_.figures.loaded_bytes = bytes_before + command.offset;
      report_progress();
      if (parts_.is_cancelled) return core::Error{std::string(kCancelled)};
      const std::string_view name = command.arguments[0];
      const auto error = find_error(origin, name, replayer->execute(command.arguments));
      if (!error) return {};
      // An unknown command in another server's log may be a command for an unsupported type.
      // rdb-foreign-types then decides whether the command is skipped. A log of Bloomery contains
      // no such commands.
      if (origin == CommandOrigin::kForeignJournal && error->is_unknown_command) {
        if (parts_.config.integer(OptionId::kRdbForeignTypes) == 0) {
          // The text is that of Redis, so that searches in logs find it.
          return core::Error{
              fmt::format("Unknown command '{}' reading the append only file: {}; "
                          "rdb-foreign-types skip leaves them out",
                          core::printable(name), error->text)};
        }
        ++parts_.figures.foreign_keys;
        return {};
      }
      // RedisBloom also logs commands that failed after a part of their work. When such a command
      // is replayed, it fails too. The load continues, unless the error means that data are lost.
      ++refused;
      if (!error->loses_data) return {};
      return core::Error{fmt::format("the command {} failed: {}{}", name, error->text,
                                     error->is_missing_database ? databases_hint() : "")};
    };
    auto replayed = persistence::replay_aof(parts_.files, path, scan, execute);
    parts_.figures.loaded_bytes = bytes_before + scan.size_bytes;
    if (replayed && refused > 0) {
      log_warning("{} commands of {} failed, as they may have when they were written", refused,
                  path);
    }
    return replayed;
  }

  std::string databases_hint() const {
    return fmt::format(": `databases` is {}; set it to the value of the server that wrote the log",
                       parts_.keyspace.database_count());
  }

  // Loads the snapshot and returns its size. In an old append log, commands may follow the
  // snapshot.
  core::Result<uint64_t> load_snapshot(const std::string& path, int64_t now_ms,
                                       bool may_be_followed) {
    const auto thread_count = static_cast<unsigned>(parts_.config.io_thread_count());
    const uint64_t bytes_before = parts_.figures.loaded_bytes;
    auto read = read_snapshot(path, now_ms, may_be_followed, thread_count);
    if (read || thread_count < 2 || parts_.is_cancelled) return read;
    // With several threads it is unknown which error is the first, so one thread reads the file
    // again.
    log_notice("Loading '{}' has failed; reading it again for the place", path);
    delete_all_keys(parts_.keyspace);  // a snapshot is loaded into an empty keyspace
    parts_.figures.loaded_bytes = bytes_before;
    return read_snapshot(path, now_ms, may_be_followed, 1);
  }

  core::Result<uint64_t> read_snapshot(const std::string& path, int64_t now_ms,
                                       bool may_be_followed, unsigned thread_count) {
    constexpr int64_t kSecondMs = 1000;
    const auto access_clock_s = static_cast<uint32_t>(parts_.clock.wall_ms() / kSecondMs);
    CancellableLoader loader(parts_, now_ms, access_clock_s);
    persistence::RdbReadOptions options;
    options.foreign_types = parts_.config.integer(OptionId::kRdbForeignTypes) == 0
                                ? persistence::ForeignTypes::kRefuse
                                : persistence::ForeignTypes::kSkip;
    options.checks_sum = parts_.config.flag(OptionId::kRdbChecksum);
    options.may_be_followed = may_be_followed;
    options.thread_count = thread_count;
    const uint64_t bytes_before = parts_.figures.loaded_bytes;
    options.on_progress = [&](const persistence::RdbProgress& progress) {
      parts_.figures.loaded_bytes = bytes_before + progress.bytes;
      parts_.figures.loaded_keys = progress.keys;
      report_progress();
      if (parts_.on_piece) parts_.on_piece();
    };
    auto file = parts_.files.open_input(path);
    if (!file) return file.error();
    const auto read = persistence::read_rdb(**file, loader, core::UnlimitedMemory(), options);
    if (!read) return refused_snapshot(path, read.error());
    position_ = position_in(loader.aux_fields());
    parts_.figures.loaded_keys = loader.loaded_keys();
    parts_.figures.expired_keys += loader.expired_keys();
    for (const auto& [type, count] : loader.foreign_types()) {
      parts_.figures.foreign_keys += count;
      log_warning("Skipped {} of type {}: this server does not serve it", count, type);
    }
    return read->total.bytes;
  }

  core::Result<Recovered> finish(const AofStart& start, std::span<const ScannedAof> files) {
    Recovered recovered;
    recovered.manifest = start.manifest;
    recovered.position = position_behind(files);
    for (const ScannedAof& file : files) recovered.log_bytes += file.scan.sound_bytes;
    if (!files.empty()) {
      const ScannedAof& last = files.back();
      // The file of another server, such as Redis, holds commands as clients sent them. Bloomery
      // writes the effects of commands instead, so it does not append to such a file.
      if (!last.is_base && !last.scan.begins_with_snapshot() && last.scan.has_effect_semantics) {
        recovered.tail = {last.scan.sound_bytes, last.scan.checksum};
      }
    }
    return recovered;
  }

  std::optional<persistence::RdbReplicationInfo> position_behind(
      std::span<const ScannedAof> files) const {
    auto position = position_;
    for (const ScannedAof& file : files) {
      if (file.scan.begins_with_snapshot()) continue;
      // A line of the file may state the stream position. If commands follow the last such line,
      // the position at the end of the file is unknown. A position from an earlier file is then
      // outdated, so it is dropped.
      if (file.scan.command_count > 0 || file.scan.position) position = file.scan.position;
    }
    const bool is_whole = is_replica() || parts_.figures.foreign_keys == 0;
    return is_whole ? position : std::nullopt;
  }

  void report_progress() {
    const LoadFigures& figures = parts_.figures;
    constexpr uint64_t kMegabyte = 1'000'000;
    report_.show(figures.share(), [&figures] {
      const uint64_t keys = figures.loaded_keys;
      return fmt::format("{} of {} MB{}", figures.loaded_bytes / kMegabyte,
                         figures.total_bytes / kMegabyte,
                         keys > 0 ? fmt::format(", {} keys", keys) : "");
    });
  }

  void report_loaded(const char* what) {
    const int64_t elapsed_us = parts_.clock.monotonic_us() - parts_.figures.started_us;
    parts_.figures.source = what;
    parts_.figures.took_us = elapsed_us;
    log_notice("DB loaded from the {}: {:.3f} seconds, {} keys expired, {} foreign skipped", what,
               static_cast<double>(elapsed_us) / 1e6, parts_.figures.expired_keys.load(),
               parts_.figures.foreign_keys.load());
  }

  const RecoveryParts& parts_;
  // Stream position of the last loaded snapshot.
  std::optional<persistence::RdbReplicationInfo> position_;
  WorkReport report_;
};

}  // namespace

core::Result<> recover_snapshot(const RecoveryParts& parts) {
  parts.figures.begin(parts.clock.monotonic_us());
  const std::string path = parts.config.text(OptionId::kDbFileName);
  if (!parts.files.exists(path)) return core::Error{"ERR there is no snapshot file"};
  return core::without_value(Recovery(parts).run_snapshot(path, core::keyspace::kIgnoreExpiry));
}

core::Result<Recovered> recover(const RecoveryParts& parts) {
  return Recovery(parts).run();
}

void delete_all_keys(core::keyspace::Keyspace& keyspace, const std::function<void()>& first) {
  core::keyspace::DetachedTables tables;  // the keys are freed after the locks were released
  const auto stripes =
      keyspace.lock(core::keyspace::kAllStripes, core::keyspace::LockMode::kExclusive);
  first();
  tables = keyspace.flush_all();
}

}  // namespace server
