// SPDX-License-Identifier: MIT
//
// Departure: the last steps of a node that ends. The node hands over the shard that it leads. Then
// the node updates etcd's list of members in sync. Members that lack writes leave the list, so that
// none of them takes over.
//
// Invariants: each `done` is called once, after a bounded time.
// Thread safety: belongs to one thread; times are monotonic, in microseconds, given by the caller.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace server::cluster {

class Member;

class Departure {
 public:
  explicit Departure(Member& member) : member_(member) {}

  // Hands the shard over if this node leads the shard and another member can take over. Otherwise,
  // or if a handover is pending, calls `done` immediately. If the leader refuses or cancels the
  // handover, step() tries again. Calls `done` half a second after this node has begun to redirect
  // clients. If the node has not begun to redirect clients after two seconds, calls `done` then.
  void hand_over(int64_t now_us, std::function<void()> done);
  // Updates the list of members in sync: members that lack part of the stream leave the list. The
  // stream ends at `offset`. Calls `done` when all members on the list of etcd have acknowledged
  // `offset`, or after kCloseListUs.
  void close_list(int64_t now_us, uint64_t offset, std::function<void()> done);
  // Calls the `done` that hand_over() or close_list() got, if that operation has ended. Must be
  // called after each event of the Member.
  void step(int64_t now_us);

 private:
  void try_handover(int64_t now_us);

  struct Wait {
    std::function<void()> done;
    int64_t until_us = 0;
  };

  Member& member_;
  std::optional<Wait> handover_;
  bool is_handed_over_ = false;
  std::optional<Wait> closing_;
};

}  // namespace server::cluster
