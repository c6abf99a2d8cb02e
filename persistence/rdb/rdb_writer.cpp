// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_writer.h"

#include <fmt/format.h>

#include <new>

#include "core/keyspace/eviction/key_use.h"
#include "core/keyspace/keyspace.h"
#include "persistence/bytes/byte_codec.h"
#include "persistence/bytes/chunked_output.h"
#include "persistence/files/append_file_sink.h"
#include "persistence/filters/filter_codec.h"
#include "persistence/rdb/dump_payload.h"
#include "persistence/rdb/rdb_format.h"

namespace persistence {
namespace {

using core::keyspace::Entry;
using core::keyspace::Keyspace;

constexpr std::string_view kTemporaryPrefix = "temp-";
constexpr std::string_view kTemporarySuffix = ".rdb";
constexpr std::string_view kReceivedSuffix = "-received.rdb";

bool is_temporary_snapshot(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix) || !name.ends_with(kTemporarySuffix)) return false;
  name.remove_prefix(kTemporaryPrefix.size());
  const bool is_received = name.ends_with(kReceivedSuffix);
  name.remove_suffix(is_received ? kReceivedSuffix.size() : kTemporarySuffix.size());
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

class RdbWriter {
 public:
  RdbWriter(ByteSink& sink, const RdbWriteOptions& options)
      : options_(options),
        out_(sink, {options.buffer_bytes, options.has_sum, [this] { report(); }}),
        writer_(out_),
        packing_(options.compresses ? Packing::kIfSmaller : Packing::kNever) {}

  void header() {
    writer_.bytes(fmt::format("{}{:04}", rdb::kMagic, rdb::kWrittenVersion));
    aux(rdb::kServerVersionAux, options_.server_version);
    aux(rdb::kBitsAux, "64");
    aux(rdb::kTimeAux, fmt::to_string(options_.created_at_s));
    aux(rdb::kUsedMemoryAux, fmt::to_string(options_.used_memory_bytes));
    if (options_.replication) {
      aux(rdb::kStreamDatabaseAux, fmt::to_string(options_.replication->stream_database));
      aux(rdb::kReplicationIdAux, options_.replication->id);
      aux(rdb::kReplicationOffsetAux, fmt::to_string(options_.replication->offset));
      if (options_.replication->is_foreign) aux(rdb::kForeignStreamAux, "1");
    }
    aux(rdb::kAofBaseAux, options_.is_aof_base ? "1" : "0");
    aux(rdb::kBloomeryVersionAux, BLOOMERY_VERSION);
    for (const auto& [name, value] : options_.more_aux) aux(name, value);
  }

  void database(const Keyspace& keyspace, unsigned index) {
    const uint64_t size = keyspace.db_size(index);
    if (size == 0) return;
    writer_.u8(rdb::kSelectDatabase);
    writer_.length(index);
    writer_.u8(rdb::kResizeDatabase);
    writer_.length(size);
    writer_.length(keyspace.expires_count(index));
    keyspace.for_each(index, [this](const Entry& entry) {
      if (out_.ok()) key(entry);
    });
  }

  core::Result<RdbProgress> finish() {
    writer_.u8(rdb::kEnd);
    writer_.u64(out_.sum());
    if (auto flushed = out_.flush(); !flushed) return flushed.error();
    return RdbProgress{out_.sent_bytes(), keys_};
  }

 private:
  void aux(std::string_view name, std::string_view value) {
    writer_.u8(rdb::kAux);
    writer_.string(name, packing_);
    writer_.string(value, packing_);
  }

  void key(const Entry& entry) {
    if (entry.has_expiry()) {
      writer_.u8(rdb::kExpiryMilliseconds);
      writer_.i64(entry.expires_at_ms());
    }
    use(core::keyspace::KeyUse(entry));
    writer_.u8(entry.is_filter() ? kModuleType : kStringType);
    writer_.string(entry.key(), packing_);
    if (entry.is_filter()) {
      encode_filter(writer_, entry.filter(), packing_);
    } else {
      core::keyspace::IntegerText scratch;
      writer_.string(entry.text(scratch), packing_);
    }
    ++keys_;
  }

  void use(const core::keyspace::KeyUse& use) {
    if (options_.use == WrittenUse::kIdleTime) {
      writer_.u8(rdb::kIdle);
      writer_.length(use.idle_s(options_.access_clock_s));
    } else if (options_.use == WrittenUse::kFrequency) {
      const core::keyspace::UseRules rules{.decay_minutes = options_.use_decay_minutes};
      writer_.u8(rdb::kFrequency);
      writer_.u8(use.count(options_.access_clock_s, rules));
    }
  }

  void report() const {
    if (options_.on_progress) options_.on_progress({out_.sent_bytes(), keys_});
  }

  const RdbWriteOptions& options_;
  ChunkedOutput out_;
  ByteWriter writer_;
  Packing packing_;
  uint64_t keys_ = 0;
};

}  // namespace

core::Result<RdbProgress> write_rdb(ByteSink& sink, const Keyspace& keyspace,
                                    const RdbWriteOptions& options) {
  try {
    RdbWriter writer(sink, options);
    writer.header();
    const unsigned databases = options.has_keys ? keyspace.database_count() : 0;
    for (unsigned i = 0; i < databases; ++i) writer.database(keyspace, i);
    return writer.finish();
  } catch (const std::bad_alloc&) {
    return core::Error{"OOM not enough memory to write a snapshot"};
  }
}

core::Result<RdbProgress> write_rdb_file(FileSystem& files, const std::string& path,
                                         const Keyspace& keyspace, const RdbWriteOptions& options) {
  return write_whole_file(files, path,
                          [&](ByteSink& sink) { return write_rdb(sink, keyspace, options); });
}

std::string temporary_snapshot_name(int64_t process_id) {
  return fmt::format("{}{}{}", kTemporaryPrefix, process_id, kTemporarySuffix);
}

std::string received_snapshot_name(int64_t process_id) {
  return fmt::format("{}{}{}", kTemporaryPrefix, process_id, kReceivedSuffix);
}

core::Result<std::vector<std::string>> remove_temporary_snapshots(FileSystem& files,
                                                                  const std::string& directory,
                                                                  const std::string& kept) {
  auto listed = files.list(directory);
  if (!listed) return listed.error();
  std::vector<std::string> gone;
  for (const std::string& name : *listed) {
    if (name == kept || !is_temporary_snapshot(name)) continue;
    gone.push_back(fmt::format("{}/{}", directory, name));
    if (auto removed = files.remove(gone.back()); !removed) return removed.error();
  }
  return gone;
}

core::Result<RdbProgress> save_rdb(FileSystem& files, const RdbPlace& place,
                                   const Keyspace& keyspace, const RdbWriteOptions& options) {
  auto total = write_rdb_file(files, place.temporary, keyspace, options);
  if (!total) return total;
  if (auto renamed = files.rename(place.temporary, place.path); !renamed) {
    (void)files.remove(place.temporary);
    return renamed.error();
  }
  // Without this the rename itself may be lost with the power.
  const auto synced = files.sync_directory(directory_of(place.path));
  if (!synced) return synced.error();
  return total;
}

}  // namespace persistence
