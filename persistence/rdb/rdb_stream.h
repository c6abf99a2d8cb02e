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
// Invariants: every byte of a value is copied to the buffer once, and only the copy is checksummed
// and written. After the sink's first error nothing more is written; finish() returns the error.
// Thread safety: one thread at a time may use an object.
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
  // `sink` and `options` must outlive the stream.
  RdbStream(ByteSink& sink, const RdbWriteOptions& options);
  RdbStream(const RdbStream&) = delete;
  RdbStream& operator=(const RdbStream&) = delete;

  // Writes the magic, the version and the AUX fields.
  void header();
  // Selects the database of the keys that follow.
  void database(uint64_t index);
  // Writes how many keys follow in the database, and how many of these keys have an expiry. Readers
  // may ignore these numbers.
  void size_hint(uint64_t keys, uint64_t expires);
  // Writes a key. REQUIRES: the key has not been written to this database.
  void key(const core::keyspace::Entry& entry);
  // Returns the sink's first error, if any.
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
