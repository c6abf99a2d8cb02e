// SPDX-License-Identifier: MIT
//
// ReplicaSession: one connection of a replica to its leader, from connect to close.
//
// Invariants: a snapshot is first written to a file and checked. The present data are deleted only
// if the check shows that the snapshot can be loaded. Commands and transactions of the stream are
// applied, counted and forwarded under the replication's apply_mutex(), and only while the session
// has not been cancelled.
// Thread safety: belongs to the replica's thread; other threads may read ReplicaFigures.
// Source: docs/replication.md, "Following a leader".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/result.h"
#include "server/base/process/waker.h"
#include "server/base/transport/client_socket.h"
#include "server/replication/replica/link_failures.h"
#include "server/replication/replica/replica_log.h"
#include "server/replication/replica/replica_parts.h"
#include "server/replication/replica/replica_protocol.h"
#include "server/replication/replica/snapshot_space.h"
#include "server/session/replayer.h"

namespace persistence {
class AppendFile;
}

namespace server {

class Client;
class StreamApplier;
struct Replacement;
struct SnapshotFacts;

class ReplicaSession {
 public:
  using Parts = ReplicaParts;
  using Target = FollowTarget;
  struct Surroundings {
    Waker& waker;
    ReplicaFigures& figures;
    LinkFailures& failures;
    const ReplayerFactory& make_replayer;
    // Returns false once the session must end, because the server stops, the target has changed, or
    // a change of the target is announced. While apply_mutex() is held, the target cannot change,
    // but a change can be announced.
    std::function<bool()> is_wanted;
    // Called when the leader has accepted PSYNC.
    std::function<void()> on_accepted = [] {};
  };

  ReplicaSession(const Parts& parts, const Surroundings& surroundings);
  ~ReplicaSession();
  ReplicaSession(const ReplicaSession&) = delete;
  ReplicaSession& operator=(const ReplicaSession&) = delete;

  // Runs the connection until it ends, and returns the cause of the end as an error. INFO and the
  // log show the error's message. If an option can prevent the error, the message names the option.
  core::Error run(const Target& target);
  // Returns whether the link was up at any time during this session.
  bool was_up() const { return was_up_; }
  // Returns the kind of the failure. REQUIRES: run() has returned.
  LinkFailures::Kind failure_kind() const;

 private:
  core::Result<> connect(const Target& target);
  ReplicaProtocol::Request request_of(const Target& target) const;
  void list_link(const Target& target);
  core::Result<> step();
  core::Result<> wait_for_own_log();
  core::Result<> check_wanted() const;
  core::Result<> handle_events();
  core::Result<> handle(ReplicaProtocol::Event event);
  core::Result<> begin_snapshot();
  core::Result<> write_snapshot();
  core::Result<> finish_snapshot();
  Replacement replacement_by(const SnapshotFacts& facts, const std::function<void()>& on_piece);
  core::Result<> go_on();
  void continue_stream();
  core::Result<> apply_units();
  core::Result<> apply_unit();
  void begin_stream(bool has_own_stream, unsigned database);
  void record_link_up();
  void send_keep_alive();
  void record_progress();
  void report_log();
  int64_t now_us() const;

  const Parts parts_;
  const Surroundings surroundings_;
  ReplicaFigures& figures_;
  ClientSocket socket_;
  std::shared_ptr<Client> client_;  // represents the link in CLIENT LIST and CLIENT KILL
  std::optional<ReplicaProtocol> link_;
  std::string received_;  // buffer for receive()
  std::unique_ptr<persistence::AppendFile> snapshot_;
  std::string snapshot_path_;
  std::optional<SnapshotSpace> snapshot_space_;
  std::unique_ptr<StreamApplier> applier_;
  ReplicaLog log_;
  bool was_up_ = false;
  bool made_progress_ = false;
  bool is_served_ = false;
  bool is_refused_ = false;    // true if the bytes from the leader were rejected
  bool refuses_data_ = false;  // true if the data were rejected, and a retry would fail too
  int64_t stream_begin_ = 0;
  int64_t next_keep_alive_us_ = 0;
};

}  // namespace server
