// SPDX-License-Identifier: MIT
//
// FollowerProtocol: what a replica says to its leader and understands of it, without a socket:
// bytes and the time go in, bytes and events come out.
//
//   FollowerProtocol link(request, now_us);
//   link.receive(bytes, now_us);
//   for (auto event = link.next(); event != Event::kNone; event = link.next()) act(event);
//   send(link.take_output());
//
//   PING ─► AUTH, REPLCONF … ─► PSYNC ─► +CONTINUE ──────────────────────────────┐
//                                  └──► +FULLRESYNC ─► $… snapshot ─► loaded() ─► stream
//
// Invariants: how the bytes were cut makes no difference. offset() counts the stream's bytes up to
// the last unit that was handed out and gone on from. Memory is taken for what has arrived: a
// snapshot passes in the pieces it came in. After kFailed nothing more happens.
// Thread safety: none; one user at a time.
// Source: PSYNC as Redis 7.0 speaks it; docs/replication.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/replication/stream/stream_splitter.h"

namespace server {

class FollowerProtocol {
 public:
  struct Request {
    std::string user;      // empty: the default one
    std::string password;  // empty: no AUTH
    uint16_t listening_port = 0;
    std::string announced_address;  // empty: what the leader sees
    // Of the data that is there; an empty id asks for a full sync.
    std::string id;
    int64_t offset = 0;
    // The leader shall make itself a replica of ours (FAILOVER).
    bool takes_over = false;
    int64_t timeout_us = 60'000'000;
    size_t unit_bytes_max = size_t{4} << 30;
  };
  enum class Phase : uint8_t {
    kHandshake,
    kAwaitsSnapshot,
    kSnapshot,
    kLoading,  // until loaded()
    kStream,
    kFailed,
  };
  enum class Event : uint8_t {
    kNone,
    kFullSync,       // id() and offset() say of what; an old leader gives no id
    kSnapshotBytes,  // snapshot_bytes()
    kSnapshotEnd,    // loaded() is waited for
    kContinue,       // id() may be a new one
    kUnit,           // unit()
    kFailed,         // failure()
  };

  FollowerProtocol(Request request, int64_t now_us);

  void receive(std::string_view bytes, int64_t now_us);
  // What has come of the bytes so far. A unit that was handed out counts as applied with the next
  // call.
  Event next();
  // The peer has closed the connection.
  void end();
  // What is due by the clock: the ACK of each second, the end of a silent link.
  void tick(int64_t now_us);
  // The snapshot is in place: the stream goes on behind it.
  void loaded(int64_t now_us);
  // While a long load goes on: tells the leader that we live.
  void keep_alive(int64_t now_us);
  // Up to where the append log has reached the disk; negative when there is none.
  void set_synced_offset(int64_t offset) { synced_offset_ = offset; }
  // Moves out what is to be sent.
  std::string take_output();

  Phase phase() const { return phase_; }
  const std::string& id() const { return id_; }
  int64_t offset() const { return offset_; }
  // Bytes of the stream that have come, applied or not.
  int64_t received_offset() const;
  std::string_view snapshot_bytes() const { return snapshot_bytes_; }
  // How much the leader has announced; -1 when it says at the end.
  int64_t snapshot_size() const { return snapshot_size_; }
  uint64_t snapshot_received() const { return snapshot_received_; }
  const StreamSplitter& unit() const { return splitter_; }
  // It keeps the link going and changes no key: PING, REPLCONF.
  bool is_unit_of_link() const { return is_unit_of_link_; }
  int64_t last_received_us() const { return last_received_us_; }
  const std::string& failure() const { return failure_; }
  // The stream holds a unit that this server cannot take, and always will.
  bool needs_full_sync() const { return splitter_.unit_is_too_big(); }

 private:
  enum class Step : uint8_t { kPing, kAuth, kPort, kAddress, kCapabilities, kPsync, kDone };

  Event fail(std::string_view reason);
  void send(std::initializer_list<std::string_view> words);
  void send_ack();
  void send_settings();
  void ask();
  bool is_asked(Step step) const;
  // Nothing when no line is whole.
  bool take_line(std::string& line);
  Event read_handshake();
  Event read_step(const std::string& line);
  Event read_psync(const std::string& line);
  Event read_full_resync(std::string_view arguments);
  Event read_continue(std::string_view arguments);
  Event read_announcement();
  Event read_snapshot();
  Event read_snapshot_until_mark();
  Event end_snapshot();
  Event read_stream();
  std::string_view input() const { return std::string_view(input_).substr(used_); }

  const Request request_;
  Phase phase_ = Phase::kHandshake;
  Step step_ = Step::kPing;
  bool knows_psync_ = true;
  std::string input_;
  size_t used_ = 0;  // of input_
  std::string output_;
  std::string id_;
  int64_t offset_ = 0;
  size_t unit_bytes_ = 0;  // handed out, not yet counted
  bool is_unit_of_link_ = false;
  std::string mark_;  // the snapshot ends with it; empty when its size is known
  int64_t snapshot_size_ = -1;
  uint64_t snapshot_received_ = 0;
  std::string_view snapshot_bytes_;
  StreamSplitter splitter_;
  int64_t synced_offset_ = -1;
  int64_t last_received_us_;
  int64_t next_ack_us_ = 0;
  bool is_failure_told_ = false;
  std::string failure_;
};

}  // namespace server
