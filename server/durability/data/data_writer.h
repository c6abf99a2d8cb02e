// SPDX-License-Identifier: MIT
//
// DataWriter: writes the keyspace to a file, as a snapshot or as a base of the append log. Takes
// the locks that prevent changes of the keyspace and the stream during the write.
//
// Invariants: the stream's mutex is locked before the stripes. While a thread holds the mutex and
// all stripes, the data match their position in the stream.
// Thread safety: all members may be called from any thread, and in a forked child.
// set_stream() must not overlap any other call.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "core/keyspace/locking.h"
#include "core/keyspace/stripe_lock.h"
#include "core/result.h"
#include "persistence/aof/aof_format.h"
#include "server/base/process/ordered_mutex.h"
#include "server/durability/data/data_parts.h"

namespace persistence {
struct RdbPlace;
struct RdbReplicationInfo;
struct RdbWriteOptions;
}  // namespace persistence

namespace server {

class StreamPosition;

class DataWriter {
 public:
  using Locking = core::keyspace::Locking;

  explicit DataWriter(const DataParts& parts) : parts_(parts) {}

  // Sets the stream whose position is saved; null for none. It must outlive every save.
  void set_stream(StreamPosition* stream) { stream_ = stream; }
  // Locks the stream's mutex. Returns an empty lock if there is no stream, or if the caller holds
  // the mutex already.
  [[nodiscard]] std::unique_lock<OrderedMutex> hold_stream(Locking locking) const;
  [[nodiscard]] core::keyspace::StripeLock lock_stripes(Locking locking) const;
  // Returns the position of the data in the stream. position() and resumable_position() require
  // that the stream's mutex and all stripes are locked.
  std::optional<persistence::RdbReplicationInfo> position() const;
  // Returns the position from which a server that has loaded these data may continue the stream.
  // Returns nullopt if there is no stream, or if the data differ from the data that the stream
  // produces.
  std::optional<persistence::RdbReplicationInfo> resumable_position() const;

  persistence::RdbWriteOptions options(bool is_aof_base) const;
  persistence::AofBaseFormat base_format() const;
  std::string snapshot_path() const;
  // Returns the paths of the snapshot and of its temporary file. Must be called before a fork,
  // because the name of the temporary file contains the id of the calling process.
  persistence::RdbPlace snapshot_place() const;

  // These functions write the keyspace to a file. They require that no thread changes the keyspace
  // during the call.
  core::Result<> write_snapshot(const persistence::RdbPlace& place,
                                const persistence::RdbWriteOptions& options) const;
  core::Result<> write_base(persistence::AofBaseFormat format, const std::string& path,
                            const persistence::RdbWriteOptions& options) const;

 private:
  const DataParts parts_;
  StreamPosition* stream_ = nullptr;
};

}  // namespace server
