// SPDX-License-Identifier: MIT
//
// RdbStream: writes a snapshot piece by piece: its head, databases, keys, and its end.
//
//   RdbStream stream(sink, options);
//   stream.header();
//   stream.database(0);
//   stream.key(entry);
//   auto total = stream.finish();
//
// Invariants: every byte of a value is copied to the buffer once, and only the copy is summed and
// written. After the sink's first error nothing is written any more; finish() tells it.
// Thread safety: none; one user at a time.
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <cstdint>
#include <string_view>

#include "core/keyspace/entry.h"
#include "persistence/bytes/byte_codec.h"
#include "persistence/bytes/chunked_output.h"
#include "persistence/rdb/rdb_writer.h"

namespace persistence {

class RdbStream {
 public:
  // Both must outlive it.
  RdbStream(ByteSink& sink, const RdbWriteOptions& options);
  RdbStream(const RdbStream&) = delete;
  RdbStream& operator=(const RdbStream&) = delete;

  // Magic, version and AUX fields.
  void header();
  // The keys that follow lie in this one.
  void database(uint64_t index);
  // How many keys, and how many with an expiry, follow in the database; readers can do without.
  void size_hint(uint64_t keys, uint64_t expires);
  // REQUIRES: the key has not been written to this database.
  void key(const core::keyspace::Entry& entry);
  // The sink's first error, if it has had one.
  core::Result<> status() const { return out_.status(); }
  core::Result<RdbProgress> finish();

 private:
  void aux(std::string_view name, std::string_view value);
  void use(const core::keyspace::Entry& entry);
  void report() const;

  const RdbWriteOptions& options_;
  ChunkedOutput out_;
  ByteWriter writer_;
  Packing packing_;
  uint64_t keys_ = 0;
};

}  // namespace persistence
