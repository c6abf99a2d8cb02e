// SPDX-License-Identifier: MIT
//
// StreamFeed: the link from journal to backlog on a leader. It also records which offset of the
// journal corresponds to the backlog's end. Position lines of the append log rely on that offset.
//
// A node of a cluster restores its replication offset when it starts, before it has a role. Until
// the node has a role, the backlog only shows whether the data have changed. Each change, such as
// the expiry of a key, moves the backlog's end.
//
// Invariants: a replica's backlog receives only its leader's stream.
// Thread safety: mutex() guards the role and all members, unless their comments say otherwise.
// Source: docs/formats.md, "Append log".
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "persistence/journal.h"
#include "server/base/process/ordered_mutex.h"
#include "server/replication/stream/backlog.h"
#include "server/replication/stream/ids.h"

namespace server {

class StreamFeed {
 public:
  StreamFeed(persistence::Journal& journal, Backlog& backlog)
      : journal_(journal), backlog_(backlog) {}

  OrderedMutex& mutex() { return mutex_; }

  void begin() {
    journal_.set_second_sink(&backlog_);
    is_on_ = true;
  }
  void pause() {
    journal_.set_second_sink(nullptr);
    is_on_ = false;
  }
  bool is_on() const { return is_on_; }

  // Called on a replica when its data match the end of the backlog. Records that the journal's
  // present end corresponds to the backlog's end. `database` is the database that the stream has
  // selected at its end.
  void record_applied(unsigned database) {
    database_ = database;
    applied_end_ = journal_.end_offset();
  }
  // Undoes record_applied(). Called on a replica before its data are replaced.
  void forget_applied() { applied_end_.reset(); }
  bool is_applied_up_to(uint64_t journal_end) const { return applied_end_ == journal_end; }

  // Returns the database that the stream has selected. Thread-safe.
  unsigned database() const { return database_; }

  // Sets the restored position. Once clients are served, a thread that changes the position holds
  // both mutex() and the replication's apply_mutex(). So a thread that reads the position needs
  // only one of these mutexes.
  void restore(uint64_t offset, bool is_ahead) { restored_ = Restored{offset, is_ahead}; }
  // Returns whether this server may have changes that are not in the stream up to the restored
  // position.
  bool restored_differs() const {
    return restored_ && (restored_->is_ahead || backlog_.end_offset() != restored_->offset);
  }
  // Starts the history of a new leader. Replicas of the old history can continue from the restored
  // position, unless the data may be ahead of that position.
  void lead_restored(ReplicationIds& ids) {
    if (!restored_) return;
    restored_->is_ahead ? ids.renew_ids() : ids.shift(restored_->offset);
    restored_.reset();
  }
  void forget_restored() { restored_.reset(); }

 private:
  struct Restored {
    uint64_t offset = 0;
    bool is_ahead = false;
  };

  persistence::Journal& journal_;
  Backlog& backlog_;
  OrderedMutex mutex_{LockRank::kRole};
  bool is_on_ = false;
  std::atomic<unsigned> database_{0};
  std::optional<uint64_t> applied_end_;
  std::optional<Restored> restored_;
};

}  // namespace server
