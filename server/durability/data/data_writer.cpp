// SPDX-License-Identifier: MIT
#include "server/durability/data/data_writer.h"

#include "core/bloom/arrays/array_memory.h"
#include "core/clock.h"
#include "core/keyspace/eviction_pool.h"
#include "core/keyspace/keyspace.h"
#include "persistence/aof/aof_base_writer.h"
#include "persistence/files/file_system.h"
#include "server/base/config/config.h"
#include "server/base/process/allocator.h"
#include "server/base/process/compatibility.h"
#include "server/dispatch/use_rules.h"
#include "server/durability/data/file_names.h"
#include "server/durability/data/key_delay.h"
#include "server/durability/data/stream_position.h"

namespace server {

using core::keyspace::kAllStripes;
using core::keyspace::LockMode;

std::unique_lock<OrderedMutex> DataWriter::hold_stream(Locking locking) const {
  if (stream_ == nullptr) return {};
  return stream_->hold(locking);
}

core::keyspace::StripeLock DataWriter::lock_stripes(Locking locking) const {
  return parts_.keyspace.lock(locking == Locking::kTake ? kAllStripes : 0, LockMode::kShared);
}

std::optional<persistence::RdbReplicationInfo> DataWriter::resumable_position() const {
  return stream_ == nullptr || stream_->has_diverged() ? std::nullopt : stream_->position();
}

std::optional<persistence::RdbReplicationInfo> DataWriter::position() const {
  return stream_ == nullptr ? std::nullopt : stream_->position();
}

persistence::RdbWriteOptions DataWriter::options(bool is_aof_base) const {
  persistence::RdbWriteOptions options;
  options.compresses = parts_.config.flag(OptionId::kRdbCompression);
  options.has_sum = parts_.config.flag(OptionId::kRdbChecksum);
  options.server_version = kCompatibleRedisVersion;
  options.created_at_s = parts_.clock.wall_ms() / 1000;
  options.used_memory_bytes = heap_bytes() + core::bloom::mapped_bytes();
  options.is_aof_base = is_aof_base;
  using core::keyspace::EvictionPolicy;
  const EvictionPolicy policy{
      static_cast<uint8_t>(parts_.config.integer(OptionId::kMaxMemoryPolicy))};
  if (is_lru(policy)) options.use = persistence::WrittenUse::kIdleTime;
  if (is_lfu(policy)) options.use = persistence::WrittenUse::kFrequency;
  options.access_clock_s = static_cast<uint32_t>(options.created_at_s);
  options.use_decay_minutes = use_rules(parts_.config).decay_minutes;
  if (const int64_t delay = key_delay(parts_.config, OptionId::kRdbKeySaveDelay); delay != 0) {
    options.after_key = [delay] { delay_for_key(delay); };
  }
  return options;
}

persistence::AofBaseFormat DataWriter::base_format() const {
  return parts_.config.flag(OptionId::kAofUseRdbPreamble) ? persistence::AofBaseFormat::kRdb
                                                          : persistence::AofBaseFormat::kCommands;
}

std::string DataWriter::snapshot_path() const {
  return parts_.config.text(OptionId::kDbFileName);
}

persistence::RdbPlace DataWriter::snapshot_place() const {
  return {snapshot_path(), temporary_snapshot()};
}

core::Result<> DataWriter::write_snapshot(const persistence::RdbPlace& place,
                                          const persistence::RdbWriteOptions& options) const {
  return core::without_value(persistence::save_rdb(parts_.files, place, parts_.keyspace, options));
}

core::Result<> DataWriter::write_base(persistence::AofBaseFormat format, const std::string& path,
                                      const persistence::RdbWriteOptions& options) const {
  return core::without_value(
      format == persistence::AofBaseFormat::kCommands
          ? persistence::write_command_base_file(
                parts_.files, path, parts_.keyspace,
                {.on_progress = options.on_progress, .after_key = options.after_key})
          : persistence::write_rdb_file(parts_.files, path, parts_.keyspace, options));
}

}  // namespace server
