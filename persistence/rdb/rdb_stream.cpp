// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_stream.h"

#include <fmt/format.h>

#include "core/keyspace/key_use.h"
#include "persistence/filters/filter_codec.h"
#include "persistence/rdb/dump_payload.h"
#include "persistence/rdb/rdb_format.h"

namespace persistence {

RdbStream::RdbStream(ByteSink& sink, const RdbWriteOptions& options)
    : options_(options),
      out_(sink, {options.buffer_bytes, options.has_sum, [this] { report(); }}),
      writer_(out_),
      packing_(options.compresses ? Packing::kIfSmaller : Packing::kNever) {}

void RdbStream::header() {
  const unsigned version =
      options_.is_for_others ? rdb::kOldestWrittenVersion : rdb::kWrittenVersion;
  writer_.bytes(fmt::format("{}{:04}", rdb::kMagic, version));
  aux(rdb::kServerVersionAux, options_.server_version);
  aux(rdb::kBitsAux, "64");
  aux(rdb::kTimeAux, fmt::to_string(options_.created_at_s));
  aux(rdb::kUsedMemoryAux, fmt::to_string(options_.used_memory_bytes));
  if (options_.replication) {
    aux(rdb::kStreamDatabaseAux, fmt::to_string(options_.replication->stream_database));
    aux(rdb::kReplicationIdAux, options_.replication->id);
    aux(rdb::kReplicationOffsetAux, fmt::to_string(options_.replication->offset));
    if (options_.replication->is_foreign) aux(rdb::kForeignStreamAux, "1");
    if (options_.replication->is_ahead) aux(rdb::kAheadAux, "1");
  }
  aux(rdb::kAofBaseAux, options_.is_aof_base ? "1" : "0");
  if (!options_.is_for_others) aux(rdb::kBloomeryVersionAux, BLOOMERY_VERSION);
}

void RdbStream::database(uint64_t index) {
  writer_.u8(rdb::kSelectDatabase);
  writer_.length(index);
}

void RdbStream::size_hint(uint64_t keys, uint64_t expires) {
  writer_.u8(rdb::kResizeDatabase);
  writer_.length(keys);
  writer_.length(expires);
}

void RdbStream::key(const core::keyspace::Entry& entry) {
  if (!out_.ok()) return;
  if (entry.has_expiry()) {
    writer_.u8(rdb::kExpiryMilliseconds);
    writer_.i64(entry.expires_at_ms());
  }
  use(entry);
  writer_.u8(entry.is_filter() ? kModuleType : kStringType);
  writer_.string(entry.key(), packing_);
  if (entry.is_filter()) {
    encode_filter(writer_, entry.filter(), packing_);
  } else {
    core::keyspace::IntegerText scratch;
    writer_.string(entry.text(scratch), packing_);
  }
  ++keys_;
  if (options_.after_key) options_.after_key();
}

core::Result<RdbProgress> RdbStream::finish() {
  writer_.u8(rdb::kEnd);
  writer_.u64(out_.sum());
  if (auto flushed = out_.flush(); !flushed) return flushed.error();
  return RdbProgress{out_.sent_bytes(), keys_};
}

void RdbStream::aux(std::string_view name, std::string_view value) {
  writer_.u8(rdb::kAux);
  writer_.string(name, packing_);
  writer_.string(value, packing_);
}

void RdbStream::use(const core::keyspace::Entry& entry) {
  if (options_.use == WrittenUse::kNone) return;
  const core::keyspace::KeyUse use(entry);
  if (options_.use == WrittenUse::kIdleTime) {
    writer_.u8(rdb::kIdle);
    writer_.length(use.idle_s(options_.access_clock_s));
    return;
  }
  const core::keyspace::UseRules rules{.decay_minutes = options_.use_decay_minutes};
  writer_.u8(rdb::kFrequency);
  writer_.u8(use.count(options_.access_clock_s, rules));
}

void RdbStream::report() const {
  if (options_.on_progress) options_.on_progress({out_.sent_bytes(), keys_});
}

}  // namespace persistence
