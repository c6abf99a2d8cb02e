// SPDX-License-Identifier: MIT
//
// LeaderHandshake: the replica's handshake up to the answer to PSYNC: lines in, commands and one
// outcome out.
//
//   PING ─► AUTH, REPLCONF … ─► PSYNC ─► +CONTINUE: the stream goes on behind offset()
//                                  ├──► +FULLRESYNC: a snapshot of id() and offset() comes
//                                  └──► refused: SYNC; a snapshot of nothing known comes
//
// Invariants: commands are appended to the output that was given; after an outcome other than
// kNone no line is taken.
// Thread safety: none; one user at a time.
// Source: PSYNC as Redis 7.0 speaks it; docs/replication.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace server {

class LeaderHandshake {
 public:
  struct Request {
    std::string user;      // empty: the default one
    std::string password;  // empty: no AUTH
    uint16_t listening_port = 0;
    std::string announced_address;  // empty: the address that the leader sees
    // Of the data that is there; an empty id asks for a full sync.
    std::string id;
    int64_t offset = 0;
    // Of the shard that both belong to; 0 outside of a cluster. A leader in another one refuses.
    uint64_t cluster_epoch = 0;
    std::string cluster_node = {};  // this node's id there
    // The leader shall make itself a replica of ours (FAILOVER).
    bool takes_over = false;
  };
  enum class Outcome : uint8_t { kNone, kFullSync, kContinue, kFailed };

  // Both must outlive it. Asks the first question.
  LeaderHandshake(const Request& request, std::string& output);

  // A line without its end. An empty one says that the leader lives.
  Outcome take(std::string_view line);

  // After kFullSync and kContinue; an old leader gives no id.
  const std::string& id() const { return id_; }
  int64_t offset() const { return offset_; }
  // False for an old leader, which knows no offsets either.
  bool knows_psync() const { return knows_psync_; }
  // After kFailed.
  const std::string& failure() const { return failure_; }

 private:
  enum class Step : uint8_t { kPing, kAuth, kPort, kAddress, kCapabilities, kEpoch, kPsync };

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
  bool knows_psync_ = true;
  std::string id_;
  int64_t offset_ = 0;
  std::string failure_;
};

}  // namespace server
