// SPDX-License-Identifier: MIT
//
// MemberQueue: passes tasks of other threads to this node's Member, and sends commands to the
// leader of its shard.
//
// Thread safety: all members may be called from any thread. Posted tasks run in order, on the
// Member's thread. Once that thread has ended, no task runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace server::cluster {

class Member;

class MemberQueue {
 public:
  virtual void post(std::function<void(Member&, int64_t now_us)> task) = 0;
  // Calls `done` with true when `condition` holds, or with false after `limit_us`.
  virtual void await(std::function<bool(const Member&, int64_t now_us)> condition, int64_t limit_us,
                     std::function<void(bool holds)> done) = 0;
  // Sends a command to the leader of this node's shard. `done` gets the line of the reply, or
  // nullopt if the leader has not answered.
  virtual void ask_leader(std::vector<std::string> words,
                          std::function<void(const std::optional<std::string>& line)> done) = 0;

 protected:
  ~MemberQueue() = default;
};

}  // namespace server::cluster
