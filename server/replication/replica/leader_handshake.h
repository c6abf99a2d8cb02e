// SPDX-License-Identifier: MIT
//
// LeaderHandshake: the replica's handshake up to the answer to PSYNC. It reads the leader's lines,
// and produces commands and one outcome.
//
//   PING ─► AUTH, REPLCONF … ─► PSYNC ─► +CONTINUE: the stream continues after offset()
//                                  ├──► +FULLRESYNC: a snapshot follows, at offset() of stream id()
//                                  └──► error: SYNC; a snapshot without id and offset follows
//
// Invariants: commands are appended to the given output. After an outcome other than kNone, no line
// is accepted.
// Thread safety: one thread at a time may use an object.
// Source: PSYNC as Redis 7.0 speaks it; docs/replication.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace server {

class LeaderHandshake {
 public:
  struct Request {
    std::string user;      // user name for AUTH; empty: the default user
    std::string password;  // password for AUTH; empty: AUTH is not sent
    uint16_t listening_port = 0;
    // Address to announce; empty: the address from which this replica connects.
    std::string announced_address;
    // The history of the present data: its id, and the offset that the data have reached. An empty
    // id requests a full sync.
    std::string id;
    int64_t offset = 0;
    // The epoch of the shard to which both servers belong; 0 outside a cluster. A leader in another
    // epoch rejects the replica.
    uint64_t cluster_epoch = 0;
    std::string cluster_node = {};  // id of this node in the cluster; empty outside a cluster

    // True to ask the leader to become a replica of this server (FAILOVER).
    bool takes_over = false;
  };
  enum class Outcome : uint8_t { kNone, kFullSync, kContinue, kFailed };

  // Appends the first command to `output`. `request` and `output` must outlive this object.
  LeaderHandshake(const Request& request, std::string& output);

  // Handles a line, which is passed without its line end. An empty line is a keepalive.
  Outcome take(std::string_view line);

  // id() and offset() are valid after kFullSync and kContinue. A leader without PSYNC gives no id.
  const std::string& id() const { return id_; }
  int64_t offset() const { return offset_; }
  // Returns whether the leader is no Bloomery. Valid after kContinue; false in a cluster, whose
  // servers are all alike.
  bool leader_is_foreign() const { return leader_is_foreign_; }
  // Returns false for a leader without PSYNC, which has no offsets either.
  bool knows_psync() const { return knows_psync_; }
  // Returns the reason why the handshake failed. Valid after kFailed.
  const std::string& failure() const { return failure_; }

 private:
  enum class Step : uint8_t { kPing, kAuth, kPort, kAddress, kCapabilities, kKind, kEpoch, kPsync };

  Outcome fail(std::string reason);
  void send(std::initializer_list<std::string_view> words);
  void send_settings();
  void ask();
  bool is_asked(Step step) const;
  Outcome take_answer(std::string_view line);
  Outcome take_full_resync(std::string_view arguments);
  Outcome take_continue(std::string_view arguments);

  const Request& request_;
  std::string& output_;
  Step step_ = Step::kPing;
  bool leader_is_foreign_ = false;
  bool knows_psync_ = true;
  std::string id_;
  int64_t offset_ = 0;
  std::string failure_;
};

}  // namespace server
