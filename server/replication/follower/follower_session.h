// SPDX-License-Identifier: MIT
//
// FollowerSession: one connection of a replica to its leader, from connecting to its end.
//
// Invariants: a snapshot goes to a file first and is checked there; what this server holds is given
// up only for one that will load. Units are applied, counted and passed on under the replication's
// apply_mutex(), and only while the session is wanted.
// Thread safety: belongs to the follower's thread; the figures may be read by others.
// Source: docs/replication.md, "Following a leader".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/result.h"
#include "server/replication/follower/follower_log.h"
#include "server/replication/follower/follower_parts.h"
#include "server/replication/follower/follower_protocol.h"
#include "server/replication/follower/follower_socket.h"
#include "server/replication/follower/link_failures.h"
#include "server/replication/follower/snapshot_space.h"
#include "server/session/replayer.h"

namespace persistence {
class AppendFile;
}

namespace server {

class Session;
class StreamApplier;
struct Replacement;
struct SnapshotFacts;

class FollowerSession {
 public:
  using Parts = FollowerParts;
  using Target = FollowTarget;
  struct Surroundings {
    Waker& waker;
    FollowerFigures& figures;
    LinkFailures& failures;
    const ReplayerFactory& make_replayer;
    // Whether the session is still wanted; under apply_mutex() the answer holds.
    std::function<bool()> is_wanted;
    // The leader serves this server: its answer to PSYNC was no refusal.
    std::function<void()> on_accepted = [] {};
  };

  FollowerSession(const Parts& parts, const Surroundings& surroundings);
  ~FollowerSession();
  FollowerSession(const FollowerSession&) = delete;
  FollowerSession& operator=(const FollowerSession&) = delete;

  // Returns when the connection has ended, with the cause; it has no other end. INFO and the log
  // show the message, which names the option that helps, if there is one.
  core::Error run(const Target& target);
  // Whether it got as far as the stream.
  bool was_up() const { return was_up_; }
  // After run().
  LinkFailures::Kind failure_kind() const;

 private:
  FollowerProtocol::Request request_of(const Target& target) const;
  void list_link(const Target& target);
  core::Result<> step();
  core::Result<> wait_for_own_log();
  core::Result<> check_wanted() const;
  core::Result<> handle_events();
  core::Result<> handle(FollowerProtocol::Event event);
  core::Result<> begin_snapshot();
  core::Result<> write_snapshot();
  core::Result<> finish_snapshot();
  Replacement replacement_by(const SnapshotFacts& facts, const std::function<void()>& on_piece);
  core::Result<> go_on();
  core::Result<> apply_units();
  core::Result<> apply_unit();
  void begin_stream(bool has_own_stream, unsigned database);
  void note_link_up();
  void send_keep_alive();
  void note_progress();
  void report_synced();
  int64_t now_us() const;

  const Parts parts_;
  const Surroundings surroundings_;
  FollowerFigures& figures_;
  FollowerSocket socket_;
  std::shared_ptr<Session> session_;  // as CLIENT LIST and CLIENT KILL see the link
  std::optional<FollowerProtocol> link_;
  std::string received_;  // the buffer of receive()
  std::unique_ptr<persistence::AppendFile> snapshot_;
  std::string snapshot_path_;
  std::optional<SnapshotSpace> snapshot_space_;
  std::unique_ptr<StreamApplier> applier_;
  FollowerLog log_;
  bool was_up_ = false;
  bool made_progress_ = false;
  bool is_served_ = false;
  bool is_refused_ = false;    // what was served
  bool refuses_data_ = false;  // the data themselves, which will be refused again
  int64_t stream_begin_ = 0;
  int64_t next_keep_alive_us_ = 0;
};

}  // namespace server
