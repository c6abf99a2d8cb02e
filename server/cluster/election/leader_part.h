// SPDX-License-Identifier: MIT
//
// LeaderPart: implements a Member's role as leader. The leader extends its permit by asking etcd.
// While etcd does not answer, the leader asks every member that could take over. The leader also
// keeps the list of members in sync, and hands the shard over.
//
// The diagram shows the states of a handover (Handover::State). A leader that has not resigned one
// second after the beginning of the handover cancels the handover:
//
//   kNone ──hand_over()──► kHoldsWrites ──writes_held()──► kAwaitsReplica ──acked──► kResigned
//     ▲                         │ one second                    │ one second              │ new
//     └─────────────────────────┴───────────────────────────────┴─────────────────────────┘ epoch
//
// Invariants: a permit begins only after its epoch is on the disk. No permit begins in an epoch in
// which this node led before its process restarted. A leader that has resigned serves again only in
// a new epoch.
// Thread safety: belongs to one thread; times are given by the caller.
// Source: see member.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/cluster/election/insync_list.h"
#include "server/cluster/election/member_state.h"
#include "server/cluster/election/offset_questions.h"

namespace server::cluster {

// Limits on the time of LeaderPart::close_list(). A replica acknowledges once a second, so its last
// acknowledgement may come that late.
inline constexpr int64_t kLastAckUs = 1'200'000;
inline constexpr int64_t kCloseListUs = kLastAckUs + 500'000;

class LeaderPart {
 public:
  explicit LeaderPart(MemberState& state);

  // `must_renew` is true if an earlier process of this node, or another process with this node's
  // id, may have led in this epoch. Then this leader may serve only in the next epoch.
  void start(const Shard& shard, bool must_renew, int64_t now_us);
  void stop();
  void step(const Shard& shard, int64_t now_us);

  // Returns the epoch in which this node leads; 0 if it does not lead.
  uint64_t epoch() const { return epoch_; }
  const Permit& permit() const { return permit_; }
  MemberService service(int64_t now_us) const;
  bool etcd_answers(int64_t now_us) const;
  bool has_lost_data(const Shard& shard, int64_t now_us) const;
  // Returns true for a restarted leader that has its data and waits for a new epoch.
  bool may_return(const Shard& shard, int64_t now_us) const;

  // Called when etcd has confirmed that this node leads in `epoch`.
  void confirmed(uint64_t epoch, int64_t sent_us);
  void promise_answered(uint64_t call, std::string_view peer, bool is_promised);
  void offset_answered(uint64_t call, std::string_view peer,
                       const std::optional<HistoryPosition>& position) {
    return_check_.answered(call, peer, position);
  }
  // Called when the leader of `epoch` has reported that it will acknowledge no more writes.
  void resigned(std::string_view shard, uint64_t epoch, int64_t now_us);

  // Starts to hand the shard over. Errors: the reply to the client. After an error the state is
  // unchanged.
  core::Result<> hand_over(const Shard& shard, std::string_view target, int64_t now_us);
  std::string successor(const Shard& shard) const;
  void writes_held(uint64_t handover, uint64_t offset);
  void end_handover();
  // Returns whether this leader has resigned and waits until etcd shows the outcome of the
  // handover.
  bool has_resigned() const { return handover_.state == Handover::State::kResigned; }
  // Called when this node shuts down, after its last write. Restricts the list of members in sync
  // to this node and to the members on the list that have acknowledged `offset`. Connected members
  // have kLastAckUs to do so. When the list is closed, or after kCloseListUs, it no longer changes,
  // because the links of the replicas then end with the server.
  void close_list(uint64_t offset, int64_t now_us);
  // Returns whether close_list() was called, and etcd has stored the list that it restricted.
  bool is_list_closed(const Shard& shard) const;
  // Returns the other members that might take over: the members that are in sync before or after
  // the pending change. If etcd has an older topology than this node, returns all other members of
  // the shard.
  IdSet possible_successors(const Shard& shard) const;

 private:
  struct Promises {
    uint64_t call = 0;
    int64_t sent_us = 0;
    IdSet missing;
  };
  struct Handover {
    enum class State : uint8_t { kNone, kHoldsWrites, kAwaitsReplica, kResigned };
    State state = State::kNone;
    std::string target;
    uint64_t offset = 0;
    int64_t deadline_us = 0;
    uint64_t number = 0;  // number of the newest handover; end_handover() keeps it
  };

  // The end of the list of members in sync, when this node shuts down.
  struct Closing {
    uint64_t offset = 0;  // the members that stay on the list have acknowledged it
    int64_t begun_us = 0;
    bool is_done = false;  // true once etcd has had the list without other members
  };

  void open_permit();
  void record_pause(int64_t now_us);
  void record_lapse(int64_t now_us);
  void renew(const Shard& shard, int64_t now_us);
  void step_promises(const Shard& shard, int64_t now_us);
  void step_insync(const Shard& shard, int64_t now_us);
  void step_handover(const Shard& shard, int64_t now_us);
  void resign(const Shard& shard);
  void name_successor(const Shard& shard);
  // Returns the list of members in sync without those that have not acknowledged `offset`.
  std::vector<std::string> list_of_acked(const Shard& shard, uint64_t offset) const;

  MemberState& state_;
  Permit permit_;
  InsyncList insync_;
  ReturnCheck return_check_;
  uint64_t epoch_ = 0;
  bool needs_new_epoch_ = false;
  int64_t begun_us_ = 0;           // time at which this node learned that it leads
  int64_t lapsed_us_ = 0;          // time at which the permit was found expired; 0: not expired
  int64_t etcd_confirmed_us_ = 0;  // time at which the newest confirmed request to etcd was sent
  int64_t stepped_us_ = 0;
  int64_t resumed_us_ = 0;  // time at which the process continued after a pause
  int64_t renew_again_us_ = 0;
  int64_t next_read_us_ = 0;
  std::optional<Promises> promises_;
  Handover handover_;
  std::optional<Closing> closing_;
  // Shard and epoch of the newest resignation that this node knows: its own, or that of another
  // leader of the shard.
  std::string resigned_shard_;
  uint64_t resigned_epoch_ = 0;
};

}  // namespace server::cluster
