// SPDX-License-Identifier: MIT
#include "persistence/rdb_writer.h"

#include <fmt/format.h>

#include <new>

#include "persistence/byte_codec.h"
#include "persistence/chunked_output.h"
#include "persistence/dump_payload.h"
#include "persistence/file.h"
#include "persistence/file_stream.h"
#include "persistence/filter_codec.h"
#include "persistence/rdb_format.h"

namespace persistence {
namespace {

using core::keyspace::Entry;
using core::keyspace::Keyspace;

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
    for (unsigned i = 0; i < keyspace.database_count(); ++i) writer.database(keyspace, i);
    return writer.finish();
  } catch (const std::bad_alloc&) {
    return core::Error{"OOM not enough memory to write a snapshot"};
  }
}

core::Result<RdbProgress> save_rdb(const std::string& path, const Keyspace& keyspace,
                                   const RdbWriteOptions& options) {
  RdbProgress total;
  const auto fill = [&](int descriptor) -> core::Result<> {
    FileSink sink(descriptor, path);
    const auto written = write_rdb(sink, keyspace, options);
    if (!written) return written.error();
    total = *written;
    return {};
  };
  if (auto replaced = replace_file_atomically(path, fill); !replaced) return replaced.error();
  return total;
}

}  // namespace persistence
