// SPDX-License-Identifier: MIT
//
// KeyspaceLoader: inserts the content of a snapshot into a keyspace.
//
// Invariants: an existing key is an error, and so is a database that does not exist. After an error
// the keyspace contains only a part of the snapshot and must be discarded.
// Thread safety: entry() may be called from any thread and locks the key's stripe. size_hint() may
// be called by one thread at any time and locks all stripes. The other members may be called by one
// thread while no thread is in entry().
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "persistence/rdb/rdb_reader.h"

namespace core::keyspace {
class Keyspace;
}  // namespace core::keyspace

namespace persistence {

class KeyspaceLoader : public RdbVisitor {
 public:
  // Keys that have expired at `now_ms` are dropped. With kIgnoreExpiry expired keys are kept, as
  // replicas and the base of an append log require. `access_clock_s` is the current time in
  // seconds, by the clock that records when keys were last used.
  KeyspaceLoader(core::keyspace::Keyspace& keyspace, int64_t now_ms, uint32_t access_clock_s = 0)
      : keyspace_(keyspace), now_ms_(now_ms), access_clock_s_(access_clock_s) {}

  // Makes the loader keep expired keys from now on.
  void keep_expired() { now_ms_ = core::keyspace::kIgnoreExpiry; }

  core::Result<> aux(std::string_view name, std::string_view value) override;
  void size_hint(uint64_t database, uint64_t keys, uint64_t expires) override;
  core::Result<> entry(uint64_t database, core::keyspace::EntryPtr entry) override;
  void foreign(uint64_t database, std::string_view type) override;

  uint64_t loaded_keys() const { return loaded_keys_; }
  uint64_t expired_keys() const { return expired_keys_; }
  const std::map<std::string, uint64_t, std::less<>>& foreign_types() const {
    return foreign_types_;
  }
  // Returns the last value of each AUX field.
  const std::map<std::string, std::string, std::less<>>& aux_fields() const { return aux_; }

 private:
  core::keyspace::Keyspace& keyspace_;
  int64_t now_ms_;
  uint32_t access_clock_s_;
  std::atomic<uint64_t> loaded_keys_{0};
  std::atomic<uint64_t> expired_keys_{0};
  std::map<std::string, uint64_t, std::less<>> foreign_types_;
  std::map<std::string, std::string, std::less<>> aux_;
};

}  // namespace persistence
