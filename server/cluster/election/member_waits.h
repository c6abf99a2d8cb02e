// SPDX-License-Identifier: MIT
//
// MemberWaits: the list of callers that wait until the Member meets a condition.
//
// Invariants: each `done` is called once, after a bounded time.
// Thread safety: belongs to one thread; times are monotonic, in microseconds, given by the caller.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace server::cluster {

class Member;

class MemberWaits {
 public:
  using Condition = std::function<bool(const Member&, int64_t now_us)>;

  // Calls `done` with true once the condition holds, or with false at `until_us`.
  void add(Condition condition, int64_t until_us, std::function<void(bool holds)> done) {
    waits_.push_back({std::move(condition), until_us, std::move(done)});
  }
  // Calls `done` of each wait that has ended. Must be called after each event of the Member.
  void step(const Member& member, int64_t now_us) {
    std::erase_if(waits_, [&](const Wait& wait) {
      const bool holds = wait.condition(member, now_us);
      if (!holds && now_us < wait.until_us) return false;
      wait.done(holds);
      return true;
    });
  }

 private:
  struct Wait {
    Condition condition;
    int64_t until_us = 0;
    std::function<void(bool holds)> done;
  };

  std::vector<Wait> waits_;
};

}  // namespace server::cluster
