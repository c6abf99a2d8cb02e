// SPDX-License-Identifier: MIT
//
// ReplicaProtocol: the replica's side of replication, without a socket: bytes and times go in,
// bytes and events come out.
//
//   ReplicaProtocol link(request, now_us);
//   link.receive(bytes, now_us);
//   for (auto event = link.next(); event != Event::kNone; event = link.next()) act(event);
//   send(link.take_output());
//
//   LeaderHandshake ─► +CONTINUE ──────────────────────────────────────┐
//          └─────────► +FULLRESYNC ─► SnapshotReceiver ─► loaded() ─► StreamSplitter
//
// Invariants: the events do not depend on how the received bytes are split. When next() returns a
// unit (command or transaction), offset() does not include this unit yet. The following call of
// next() adds it, because the caller has applied the unit by then. Memory is allocated for received
// bytes only: a snapshot is passed on in the pieces that arrive. After kFailed no further event is
// returned.
// Thread safety: one thread at a time may use an object.
// Source: PSYNC of Redis 7.0; docs/replication.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "server/replication/replica/leader_handshake.h"
#include "server/replication/replica/snapshot_receiver.h"
#include "server/replication/stream/stream_splitter.h"

namespace server {

// The state of a replica's append log that acknowledgements report.
struct ReportedLog {
  int64_t synced_offset = -1;  // offset up to which the log is on disk; negative: there is no log
  bool fails = false;          // true if the log cannot be written; reported only in a cluster
};

class ReplicaProtocol {
 public:
  struct Request : LeaderHandshake::Request {
    int64_t timeout_us = 60'000'000;
    size_t unit_bytes_max = size_t{4} << 30;
  };
  enum class Phase : uint8_t {
    kHandshake,
    kAwaitsSnapshot,
    kSnapshot,
    kLoading,  // the caller is loading the snapshot, and will then call loaded()
    kStream,
    kFailed,
  };
  enum class Event : uint8_t {
    kNone,
    kFullSync,       // a snapshot follows; id() is empty if the leader does not support PSYNC
    kSnapshotBytes,  // snapshot_bytes() has the next piece
    kSnapshotEnd,    // the snapshot is complete: the caller must load it and call loaded()
    kContinue,       // the leader continues the stream: id() may have changed
    kUnit,           // the caller must execute the commands of unit()
    kFailed,         // the link has failed: failure() has the reason
  };

  ReplicaProtocol(Request request, int64_t now_us);
  ReplicaProtocol(const ReplicaProtocol&) = delete;
  ReplicaProtocol& operator=(const ReplicaProtocol&) = delete;

  void receive(std::string_view bytes, int64_t now_us);
  // Returns the next event in the received bytes. A returned unit (a command or a transaction)
  // counts as applied at the next call.
  Event next();
  // Sends an acknowledgement once a second. Fails the link if nothing is received for too long.
  void tick(int64_t now_us);
  // Called when the snapshot is loaded. The stream continues after it.
  void loaded(int64_t now_us);
  // Called during a long load, and while the own append log accepts no data. Sends a keepalive to
  // the leader, and restarts the timeout for silence.
  void keep_alive(int64_t now_us);
  // Sets the state of the append log that acknowledgements report. If the log has begun to fail, or
  // works again, the next tick() sends an acknowledgement without delay.
  void set_log(ReportedLog log);
  // Returns the bytes to send, and empties the output.
  std::string take_output() { return std::exchange(output_, {}); }

  Phase phase() const { return phase_; }
  const std::string& id() const { return id_; }
  int64_t offset() const { return offset_; }
  bool leader_is_foreign() const { return handshake_.leader_is_foreign(); }
  // Returns the offset up to which the stream was received, applied or not.
  int64_t received_offset() const;
  std::string_view snapshot_bytes() const { return snapshot_bytes_; }
  // Returns the snapshot's size as the leader announced it; -1 if an end mark ends the snapshot.
  int64_t snapshot_size() const { return snapshot_.size(); }
  uint64_t snapshot_received() const { return snapshot_.received(); }
  const StreamSplitter& unit() const { return splitter_; }
  // Returns whether the unit is PING or REPLCONF, which maintain the link and change no key.
  bool is_unit_of_link() const { return is_unit_of_link_; }
  const std::string& failure() const { return failure_; }
  // Returns whether the stream contains a command or a transaction that this server can never
  // apply.
  bool needs_full_sync() const { return splitter_.unit_is_too_big(); }

 private:
  Event fail(std::string_view reason);
  void send_ack();
  void begin_stream();
  // Takes the next line from the input. Returns false if no complete line has arrived.
  bool take_line(std::string_view& line);
  Event wait_for_line();
  Event read_handshake();
  Event read_announcement();
  Event read_snapshot();
  Event read_stream();
  std::string_view input() const { return std::string_view(input_).substr(used_); }

  const Request request_;
  Phase phase_ = Phase::kHandshake;
  std::string input_;
  size_t used_ = 0;  // number of bytes of input_ that were consumed
  std::string output_;
  LeaderHandshake handshake_;
  std::string id_;
  int64_t offset_ = 0;
  SnapshotReceiver snapshot_;
  std::string_view snapshot_bytes_;
  StreamSplitter splitter_;
  size_t unit_bytes_ = 0;  // size of the unit that was returned but does not count as applied yet
  bool is_unit_of_link_ = false;
  ReportedLog log_;
  int64_t last_received_us_;
  int64_t next_ack_us_ = 0;
  bool is_failure_reported_ = false;
  std::string failure_;
};

}  // namespace server
